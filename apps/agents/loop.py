"""The loop: how a run gets from a problem to a faster, proven kernel, or to the reference where there is none.

It reads like the paper's figure. Its steps, with what they journal and tell, are in `apps.agents.steps`.

The reference has no step of its own: every judgement times it anew, in pairs with the candidate, since a time taken at
another moment says little. The first judgement that got as far as timing gives the run its reference (`ReferenceTimed`).
"""

from __future__ import annotations

from collections.abc import Sequence

from apps.agents import conductor
from apps.agents.facts import RunEnded, StepKey
from apps.agents.steps import diagnosing, judging, reasoning, writing
from apps.agents.steps.course import Course, End, Team
from apps.agents.steps.writing import Draft, Written
from apps.agents.verifier import sentence
from apps.agents.words import Advice, Assignment, Attempt, Ending
from apps.kernels.evaluation import Evaluation, Outcome, Verdict

# How many versions are judged in full at most, where one that led the loop does not hold there.
MOST_JUDGED_IN_FULL = 3


def optimise(assignment: Assignment, team: Team) -> RunEnded:
    """Do the whole run, or the rest of one whose journal already holds its first steps."""
    return _Loop(assignment, team).run()


class _Loop:
    def __init__(self, assignment: Assignment, team: Team) -> None:
        self.assignment = assignment
        self.course = Course(assignment, team)
        self.iteration = 0
        self.kept: int | None = None

    def run(self) -> RunEnded:
        """Seed, iterate, and come to an honest end however that happens."""
        try:
            advices = self.seed()
            while True:
                advices = self.iterate(advices)
        except End as end:
            return self.conclude(end)

    def seed(self) -> Sequence[Advice | None]:
        """Judge the versions the run starts from; the Conductor advises from the best of them."""
        self.course.orders("start", 0)
        if self.assignment.facts.refusal is not None:
            raise End(f"The problem can't be judged: {self.assignment.facts.refusal}", Ending.FAILED)
        for draft in writing.seeds(self.course):
            self.prove(draft, repairs=0)
        self.keep()
        return self.advise()

    def iterate(self, advices: Sequence[Advice | None]) -> Sequence[Advice | None]:
        """One turn: write, verify and repair, profile, reason. Gives the advices for the next one."""
        self.iteration += 1
        written = self.write(advices)
        for draft in written.drafts:
            self.prove(draft, self.assignment.repairs if written.stopped is None else 0)
        self.keep()
        if written.stopped is not None:
            raise written.stopped.end()
        return self.advise()

    def write(self, advices: Sequence[Advice | None]) -> Written:
        """A candidate for each advice, in slot order, all written before the first of them is judged.

        A person's stop ends the run there. At a limit, what was written and paid for is judged first.
        """
        self.course.orders("write", self.iteration)
        written = writing.write(self.course, self.iteration, advices)
        if written.stopped is not None and written.stopped.ending is Ending.STOPPED:
            raise written.stopped.end()
        return written

    def prove(self, draft: Draft, repairs: int) -> None:
        """Verify a candidate; where it fails the Coder repairs it from the error, a bounded number of times.

        What the error leaves open the Verifier reads first, where the run has a model for it.
        """
        attempt = judging.verify(self.course, draft)
        while attempt.evaluation.verdict is not Verdict.CORRECT and attempt.repair < repairs:
            self.course.orders("repair", attempt.iteration, attempt.slot, attempt.repair + 1)
            diagnosing.diagnose(self.course, attempt)
            repaired = writing.repair(self.course, attempt)
            if repaired is None:
                return
            attempt = judging.verify(self.course, repaired)
        if attempt.evaluation.verdict is Verdict.CORRECT:
            judging.profile(self.course, attempt)

    def keep(self, *, finishing: bool = False) -> None:
        """Hold the last advices against what happened and keep the best version, confirmed where it needs to be."""
        while (champion := conductor.champion(self.course.memory.history)) is not None:
            if self.sound(champion, finishing=finishing):
                break
        reasoning.keep(self.course, self.iteration)
        self.kept = self.iteration

    def sound(self, attempt: Attempt, *, finishing: bool) -> bool:
        """Whether a version may be called best: one built through our own header is first built with Torch's."""
        if not uses_load_inline(attempt) or attempt.number in self.course.memory.confirmed:
            return True
        return judging.confirm(self.course, attempt, finishing=finishing)

    def advise(self) -> Sequence[Advice | None]:
        """Advices for the next iteration's candidates; a plain None for each while there is nothing to reason from."""
        self.course.orders("advise", self.iteration)
        self.stop_if_enough()
        if self.course.memory.best is None:
            return [None] * self.assignment.candidates
        advices = []
        for slot in range(self.assignment.candidates):
            advice = reasoning.advise(self.course, self.iteration, slot)
            if advice is None:
                break
            advices.append(advice)
        return advices

    def stop_if_enough(self) -> None:
        """End at the goal, on a plateau, or after the last iteration."""
        assignment, history = self.assignment, self.course.memory.history
        if reason := conductor.enough(history, self.iteration, assignment.goal, assignment.plateau):
            raise End(reason)
        if self.iteration >= self.course.limits.iterations:
            raise End(f"All {self.iteration} iterations are done.")

    # --- the end

    def conclude(self, end: End) -> RunEnded:
        """Judge the best in full, unless told to end at once, and say what is to be used: it, or the reference."""
        judged: tuple[Attempt, Evaluation] | None = None
        if not end.at_once:
            try:
                if self.kept != self.iteration:
                    self.keep(finishing=True)
                judged = self.judge_the_best()
            except End as sooner:
                end = End(f"{sentence(end.reason)} {sooner.reason}", sooner.ending, at_once=True)
        key = StepKey(self.iteration, 0, "end")
        ended = last_word(end, judged, conductor.champion(self.course.memory.history))
        return self.course.team.journal.step(
            key, self.course.memory.trail, RunEnded, lambda say: ended, tell=lambda last: [last]
        )

    def judge_the_best(self) -> tuple[Attempt, Evaluation] | None:
        """The best version with its full judgement; where one fails that, the next best, a few times at most."""
        for _ in range(MOST_JUDGED_IN_FULL):
            leader = self.leader()
            if leader is None:
                return None
            real_headers = uses_load_inline(leader)
            evaluation = judging.judge_in_full(self.course, leader, self.iteration, real_headers=real_headers)
            if evaluation.verdict is Verdict.CORRECT:
                return leader, evaluation
        return None

    def leader(self) -> Attempt | None:
        """The fastest version, after those that may be as fast have been timed against each other."""
        contenders = conductor.contenders(self.course.memory.history)
        if not contenders:
            return None
        leader = contenders[0]
        for rival in contenders[1:]:
            if self.sound(rival, finishing=True):
                leader = judging.duel(self.course, rival, leader, self.iteration)
        return leader


def uses_load_inline(attempt: Attempt) -> bool:
    """Whether a version's build goes through Torch's C++ headers, or through ours in their place.

    A mention is enough: to confirm one that didn't need it costs seconds, to miss one a wrong claim.
    """
    return any(name in attempt.writing.source for name in ("load_inline", "cpp_extension"))


def last_word(end: End, judged: tuple[Attempt, Evaluation] | None, best: Attempt | None) -> RunEnded:
    """What a run comes to: the version to use, or the reference with the best attempt shown as an attempt."""
    why = sentence(end.reason)
    if judged is None:
        return RunEnded(f"{why} {_without_judgement(end, best)}", None, _number(best), None, 1.0, end.ending)
    attempt, evaluation = judged
    outcome, speedup = evaluation.timing.outcome, evaluation.speedup or 1.0
    if outcome is Outcome.FASTER:
        said = f"v{attempt.number} is {speedup:.2f}x as fast as the reference."
        return RunEnded(f"{why} {said}", attempt.number, attempt.number, outcome, speedup, end.ending)
    how = "slower than the reference" if outcome is Outcome.SLOWER else "no faster than the reference beyond noise"
    said = f"The best attempt, v{attempt.number}, is {how}, which stays."
    return RunEnded(f"{why} {said}", None, attempt.number, outcome, 1.0, end.ending)


def _without_judgement(end: End, best: Attempt | None) -> str:
    if best is None:
        return "No version was found correct, so the reference stays."
    if end.at_once:
        return f"The best attempt, v{best.number}, was not judged in full, so the reference stays."
    return f"None held in the full judgement, so the reference stays; the next best attempt is v{best.number}."


def _number(attempt: Attempt | None) -> int | None:
    return attempt.number if attempt is not None else None
