"""The built-in Conductor: names the bottleneck from the measurements and advises the move that should bring most."""

from __future__ import annotations

from apps.agents import profiler
from apps.agents.builtin.cost import Cost
from apps.agents.builtin.narration import Narrator, listed, megabytes, milliseconds
from apps.agents.builtin.plan import Plan, Step, step_of
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.search import (
    FIRST_TRUST,
    LEAST_GAIN,
    SLOWER_RATIO,
    Proposal,
    Search,
    helped,
)
from apps.agents.figures import figure
from apps.agents.ports import Say
from apps.agents.words import (
    Advice,
    Assignment,
    Attempt,
    CannotWrite,
    Evidence,
    History,
    Holding,
    NothingToGain,
    Prediction,
)
from apps.kernels.plain import to_plain

# So many of the moves left are named; more would bury the one that is advised.
_MOST_NAMED = 3


class BuiltinConductor:
    """See `apps.agents.ports.Conductor`. A pure function of the history."""

    def advise(self, assignment: Assignment, history: History, say: Say) -> Advice | NothingToGain:
        """The next move on the best version, or why there is none."""
        narrator = Narrator(say)
        try:
            search = Search(assignment, history)
        except CannotWrite as refusal:
            return _nothing(narrator, f"No move is known here: {refusal}")
        best = search.best
        if best is None:
            return NothingToGain("No version is correct yet.")
        _tell_outcome(search, narrator)
        _tell_standing(search, best, narrator)
        if search.plan is None:
            return _take_over(search, best, narrator)
        roof = search.at_the_roof()
        if roof is not None:
            return _nothing(narrator, _roof_reached(best, roof))
        proposals = search.proposals()
        if not proposals:
            return _nothing(narrator, _all_tried(search, best))
        return _advice(search, best, proposals, narrator)


def _take_over(search: Search, best: Attempt, narrator: Narrator) -> Advice | NothingToGain:
    """The best version is another author's: write the problem anew from its meaning, with what helps most kernels."""
    schedule = Schedule(width=search.assignment.host.vector_bits or 128, polynomials=True)
    if not search.is_new(schedule):
        return _nothing(narrator, f"v{best.number} is another author's, and my own kernels are slower.")
    narrator.tell(
        "It was not written by me, so I can't edit it; I start a version of my own from the problem's meaning."
    )
    change = "Write all operations as one kernel on whole vectors, with elementary functions in line"
    return Advice(
        0, best.number, "not written here", (), f"{change}.",
        (Prediction(profiler.TIME_OVER_REFERENCE, 0.9, 0.3, 1.0),), narrator.text,
        to_plain(Step("vectors", Plan(schedule, ("vectors",), None))),
    )  # fmt: skip


def _nothing(narrator: Narrator, reason: str) -> NothingToGain:
    narrator.tell(reason)
    return NothingToGain(reason, reasoning=narrator.text)


def _roof_reached(best: Attempt, roof: Evidence) -> str:
    what = "moves its bytes" if roof.metric == "share_of_memory_roof" else "computes"
    return (
        f"v{best.number} {what} at {roof.value:.0%} of what this machine can do at most; what is left is within the accuracy "
        "of that figure."
    )


def _all_tried(search: Search, best: Attempt) -> str:
    plan = search.plan
    left = search.untried(plan.schedule) if plan is not None else []
    if not left:
        return f"Every move that changes v{best.number} was tried."
    names = listed([move.name.replace("-", " ") for move, _ in left][:_MOST_NAMED])
    share = search.value("share_of_roof")
    where = f" It is at {share:.0%} of its roof." if share is not None else ""
    return (
        f"What could still be changed in v{best.number} ({names}) should bring less than {LEAST_GAIN:.0%}, or was refuted "
        f"before.{where}"
    )


def _advice(search: Search, best: Attempt, proposals: list[Proposal], narrator: Narrator) -> Advice:
    chosen, plan = proposals[0], search.plan
    assert plan is not None
    narrator.paragraph()
    if search.profiled:
        _tell_reading(search, best, chosen, narrator)
        _tell_alternatives(proposals[1:], narrator)
    else:
        narrator.tell(
            "There is no profile to reason from, so I go through my moves in their usual order: what costs whole multiples "
            "first, then passes over memory, then what is left within the loop."
        )
    narrator.paragraph()
    narrator.tell(f"Advice: {_lowered(chosen.move.change)}.")
    narrator.tell(_why(chosen))
    narrator.tell(
        f"I predict {chosen.ratio:.2f} of v{best.number}'s time against the reference, and count it as held between "
        f"{chosen.low:.2f} and {chosen.high:.2f}."
    )
    after = plan.after(chosen.move.name, chosen.schedule, best.number)
    return Advice(
        number=0,
        base=best.number,
        bottleneck=_bottleneck(best, chosen),
        evidence=chosen.evidence or _roof_evidence(search),
        change=f"{chosen.move.change}.",
        expected=(
            Prediction(profiler.TIME_OVER_REFERENCE, round(chosen.ratio, 4), chosen.low, chosen.high),
            *_side_effect(chosen),
        ),
        reasoning=narrator.text,
        move=to_plain(Step(chosen.move.name, after)),
    )


def _why(chosen: Proposal) -> str:
    why = chosen.move.why
    if chosen.speculative:
        return f"Where that helps, it is because {why}."
    return f"{why[0].upper()}{why[1:]}."


def _bottleneck(best: Attempt, chosen: Proposal) -> str:
    """What the profile named, where this move answers just that; else the move's own term, or the cost model's."""
    named = best.evaluation.profile.bottleneck
    if named is not None and any(named.metric == one.metric for one in chosen.evidence):
        return named.name
    if chosen.speculative:
        return "below the roof"
    return chosen.move.bottleneck if chosen.evidence else chosen.before.limit


def _roof_evidence(search: Search) -> tuple[Evidence, ...]:
    share = search.value("share_of_roof")
    return (Evidence("share_of_roof", share, "share", "<", 0.9),) if share is not None and share < 0.9 else ()


def _side_effect(chosen: Proposal) -> tuple[Prediction, ...]:
    """What should become of the metric that asked for the move, where the move says so."""
    effect = chosen.move.effect
    asked = next((one for one in chosen.evidence if effect is not None and one.metric == effect.metric), None)
    if effect is None or asked is None or not asked.value:
        return ()
    return (Prediction(effect.metric, effect.ratio, effect.low, effect.high),)


# --- what is said -----------------------------------------------------------------------------------------------


def _tell_outcome(search: Search, narrator: Narrator) -> None:
    """How the last advices turned out, and what that does to the trust in such moves."""
    newest = max((attempt.iteration for attempt in search.history.attempts), default=0)
    followed = {a.advice for a in search.history.attempts if a.iteration == newest and a.advice is not None}
    for holding in search.history.holdings:
        if holding.advice in followed:
            narrator.tell(_outcome(search, holding))
    if search.history.hints and not search.history.advices:
        narrator.tell("A person left a hint; I can't read words, only measurements, so it waits for a coder who can.")


def _outcome(search: Search, holding: Holding) -> str:
    advice = next(one for one in search.history.advices if one.number == holding.advice)
    step = step_of(advice)
    time = next((one for one in holding.happened if one.metric == profiler.TIME_OVER_REFERENCE), None)
    if time is None:
        return f"v{holding.version}, which followed advice {holding.advice}, was not timed."
    measured = time.after / time.before
    told = f"Advice {holding.advice} predicted {time.predicted:.2f} of v{advice.base}'s time; v{holding.version} took "
    told += f"{measured:.2f}"
    if step is None:
        return f"{told}."
    trust = search.trust(step.name)
    if holding.held:
        return f"{told}, so it held, and I trust such moves at {trust:.2f} now."
    others = [one.metric for one in holding.happened if not one.held and one is not time]
    if helped(holding):
        why = f", though {listed(others)} did not move as predicted" if others and time.held else ", not as predicted"
        return f"{told}: it helped{why}. My trust in such moves is {trust:.2f} now."
    if not search.clearly_no_faster(holding):
        return (
            f"{told}, but both times are too uncertain to call it refuted. My trust in such moves is {trust:.2f} now."
        )
    return f"{told}, so it is refuted, and my trust in such moves falls from {FIRST_TRUST:.2f} to {trust:.2f}."


def _tell_standing(search: Search, best: Attempt, narrator: Narrator) -> None:
    """Where the best version stands: its time, its bytes, the roof above it."""
    timing = best.evaluation.timing
    if timing.candidate is not None and timing.reference is not None and best.evaluation.speedup:
        narrator.tell(
            f"The best so far is v{best.number}: {milliseconds(timing.candidate.median_ms / 1e3)} where the reference takes "
            f"{milliseconds(timing.reference.median_ms / 1e3)}, {best.evaluation.speedup:.2f}x."
        )
    moved, rate = search.value("compulsory_bytes"), search.value("achieved_bandwidth")
    roof, share = search.value("memory_roof"), search.value("share_of_memory_roof")
    if moved and rate and roof and share is not None:
        judged = (
            "close to what memory allows" if share >= 0.8 else
            "half of the way there, so memory traffic matters but does not yet decide" if share >= 0.4 else
            "far from it, so something else than memory holds it back"
        )  # fmt: skip
        narrator.tell(
            f"It has to move {megabytes(moved)} and does so at {rate:.3g} GB/s; the roof for this mix of reads and writes is "
            f"{roof:.3g} GB/s. That is {share:.0%}: {judged}."
        )


def _tell_reading(search: Search, best: Attempt, chosen: Proposal, narrator: Narrator) -> None:
    """What the profile shows, and what the cost model makes of it."""
    named = best.evaluation.profile.bottleneck
    if named is not None:
        narrator.tell(f"The profile names its bottleneck: {named.name}.")
    if chosen.evidence:
        narrator.tell(f"What speaks for a change here: {listed([_said(one) for one in chosen.evidence])}.")
    elif chosen.speculative:
        narrator.tell(
            "Neither a metric nor my count points at a next change, yet the kernel is far from its roof, so something costs "
            "time that neither sees. I try what is left and expect little of it."
        )
    else:
        narrator.tell("No single metric asks for the next change; the count of its work does.")
    before, after = chosen.before, chosen.after
    narrator.tell(
        f"Counted over this machine's ceilings, of v{best.number}'s time {milliseconds(before.computing)} go to computing "
        f"({_terms(before)}) and {milliseconds(before.memory)} to moving bytes, partly at once; after the change it would be "
        f"{milliseconds(after.computing)} and {milliseconds(after.memory)}."
    )
    if chosen.evidence and chosen.modelled > chosen.ratio:
        narrator.tell("The count alone sees little in it, but a measurement outweighs a count: it is worth one try.")
    if chosen.trust < FIRST_TRUST:
        narrator.tell(f"Such moves have disappointed in this run, so I weigh the gain by {chosen.trust:.2f}.")


def _terms(cost: Cost) -> str:
    parts = [("arithmetic", cost.arithmetic), ("library calls", cost.calls), ("waiting for results", cost.waiting)]
    return listed([f"{name} {milliseconds(value)}" for name, value in parts if value > 0.02 * cost.computing]) or "none"


def _tell_alternatives(others: list[Proposal], narrator: Narrator) -> None:
    worth = [one for one in others if one.modelled <= SLOWER_RATIO][:_MOST_NAMED]
    if worth:
        said = listed([f"{one.move.name.replace('-', ' ')} ({one.ratio:.2f} of the time)" for one in worth])
        narrator.tell(f"It comes before {said}, which should bring less for now.")


def _said(one: Evidence) -> str:
    relation = "above" if one.relation == ">" else "below"
    name = one.metric.replace("_", " ")
    return f"{name} is {figure(one.value, one.unit)}, {relation} {figure(one.threshold, one.unit)}"


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]
