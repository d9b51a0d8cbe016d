"""The built-in Coder: writes kernels from a problem's meaning and a schedule. It needs no model."""

from __future__ import annotations

from apps.agents import verifier
from apps.agents.builtin.moves import Move, edits, move_named
from apps.agents.builtin.narration import Narrator, listed, loops, megabytes, milliseconds
from apps.agents.builtin.opening import PLAIN, opening
from apps.agents.builtin.plan import Plan, plan_of, step_of
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.search import Search
from apps.agents.ports import Say
from apps.agents.words import Attempt, Brief, CannotWrite, Writing


class BuiltinCoder:
    """See `apps.agents.ports.Coder`. Its plan is `plan.Plan` as JSON; the same history gives the same writing."""

    name = "builtin"
    at_once = 1  # it computes, and Python does that in one thread at a time

    def write(self, brief: Brief, say: Say) -> Writing:
        """A first version of plain loops, then the best one's plan with the advised move. Raises `CannotWrite`."""
        search, narrator = Search(brief.assignment, brief.history), Narrator(say)
        step = step_of(brief.advice)
        if step is not None:
            move = move_named(step.name)
            return _written(search, narrator, step.plan, move, brief.advice.base if brief.advice else None)
        if search.plan is None:
            return self._first(brief, search, narrator)
        if brief.advice is not None:
            narrator.tell("The advice names no move that I know, so I take my own next one.")
        return self._next(search, narrator, brief.slot)

    def repair(self, brief: Brief, failed: Attempt, say: Say) -> Writing:
        """Without the move that failed: the best version with its next move, or another first version."""
        search, narrator = Search(brief.assignment, brief.history), Narrator(say)
        narrator.tell(f"v{failed.number} is no good: {verifier.summary(failed.evaluation)}")
        plan = plan_of(failed)
        culprit = move_named(plan.moves[-1]) if plan is not None and plan.moves else None
        if culprit is not None:
            narrator.tell(f"What changed last is {culprit.name.replace('-', ' ')}; I leave that out.")
        if search.plan is not None:
            return self._next(search, narrator, 0)
        return self._first(brief, search, narrator)

    def _first(self, brief: Brief, search: Search, narrator: Narrator) -> Writing:
        """The plainest good schedule that was not tried, by slot, so that several candidates differ."""
        start, names = opening(search.shop)
        host, plain = brief.assignment.host, ((PLAIN, ()),) if search.history.attempts else ()
        options: list[tuple[Schedule, tuple[str, ...]]] = [(start, names), *plain]
        options += [(after, (*names, move.name)) for move, after in edits(start, host)]
        options += [(PLAIN, ()), *((after, (move.name,)) for move, after in edits(PLAIN, host))]
        new = _distinct(search, options)
        # An iteration's slots are all written before any of them is judged; a repair comes when the others are known.
        place = brief.slot if not any(a.iteration == brief.iteration for a in brief.history.attempts) else 0
        if place >= len(new):
            raise CannotWrite("There is no other plain way left to write this kernel.", text=narrator.text)
        schedule, moves = new[place]
        changed = move_named(moves[-1]) if moves and schedule != start else None
        return _written(search, narrator, Plan(schedule, moves), changed, None)

    def _next(self, search: Search, narrator: Narrator, place: int) -> Writing:
        """The best version with the move that promises most, or, by slot, one of those after it."""
        proposals, plan = search.proposals(), search.plan
        if plan is None or place >= len(proposals):
            raise CannotWrite(f"No move is left that is worth a try on v{search.history.best}.", text=narrator.text)
        chosen = proposals[place]
        after = plan.after(chosen.move.name, chosen.schedule, search.history.best)
        return _written(search, narrator, after, chosen.move, search.history.best)


def _distinct(
    search: Search, options: list[tuple[Schedule, tuple[str, ...]]]
) -> list[tuple[Schedule, tuple[str, ...]]]:
    """Those that give a source of their own and were not tried."""
    found: dict[str, tuple[Schedule, tuple[str, ...]]] = {}
    for schedule, moves in options:
        if search.is_new(schedule):
            found.setdefault(search.shop.source(schedule), (schedule, moves))
    return list(found.values())


def _written(search: Search, narrator: Narrator, plan: Plan, move: Move | None, base: int | None) -> Writing:
    source = search.shop.source(plan.schedule)
    if move is None:
        _tell_first(search, narrator, plan)
        how = "vectors" if plan.schedule.width else "plain loops"
        summary = f"All operations fused into one kernel with {how} over all cores."
    else:
        _tell_change(narrator, move, base)
        summary = f"{move.change}{f', on v{base}' if base is not None else ''}."
    kernel = search.shop.kernel(plan.schedule)
    for sentence in loops(kernel, plan.schedule):
        narrator.tell(sentence)
    cost = search.shop.cost(plan.schedule)
    narrator.tell(
        f"It moves {megabytes(cost.main_bytes)} a call between memory and the cores"
        + (f" and reads {megabytes(cost.cache_bytes)} again from cache" if cost.cache_bytes > 1e5 else "")
        + "."
    )
    return Writing(source, summary, narrator.text, plan.to_plain())


def _tell_first(search: Search, narrator: Narrator, plan: Plan) -> None:
    facts = search.assignment.facts
    operators = sum(facts.operators.values())
    passes = f"the {operators} operations" if operators > 1 else "the operation"
    narrator.tell(f"I have read what each element of the result is, through {passes} of the model.")
    if facts.compulsory_bytes:
        narrator.tell(
            f"Whatever the kernel does, it has to move {megabytes(facts.compulsory_bytes)} a call; each temporary tensor "
            "that eager PyTorch makes comes on top, so all of it is fused into one function without temporaries."
        )
    cost = search.shop.cost(plan.schedule)
    narrator.tell(
        "The first version is the straightforward one: loops that a person would write, threads over the outermost"
        f"{', vectors left to the compiler' if not plan.schedule.width else ''}."
    )
    seen = [move for name in plan.moves if (move := move_named(name)) is not None]
    if seen:
        changes = listed([move.change[0].lower() + move.change[1:] for move in seen])
        narrator.tell(f"What the loops themselves show to cost a great share of the time I see to at once: {changes}.")
    narrator.tell(f"I expect about {milliseconds(cost.seconds)}, most of it {cost.limit}; measuring will tell.")
    narrator.paragraph()


def _tell_change(narrator: Narrator, move: Move, base: int | None) -> None:
    where = f"I start from v{base} and change one thing" if base is not None else "I change one thing from plain loops"
    change = move.change[0].lower() + move.change[1:]
    narrator.tell(f"{where}: {change}.")
    narrator.tell(f"{move.why[0].upper()}{move.why[1:]}.")
    narrator.paragraph()
