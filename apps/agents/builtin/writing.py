"""From a problem's facts and a schedule to a candidate's source: the way through all of this folder in one call."""

from __future__ import annotations

from apps.agents.builtin.cpp.candidate import write_candidate as candidate_of
from apps.agents.builtin.lowering import lower
from apps.agents.builtin.reading import Meaning, read
from apps.agents.builtin.schedule import Schedule
from apps.agents.words import CannotWrite
from apps.kernels.evaluation import Policy
from apps.kernels.facts import ProblemFacts
from apps.kernels.machine import HostReport

# A schedule with everything on, so that each choice can be seen to matter where it does.
RICHEST = Schedule(
    width=512, polynomials=True, accumulators=4, streaming=True, reciprocals=True, keep=True, ahead=True, online=True,
    moments=True, split=8,
)  # fmt: skip
_OTHERS: dict[str, tuple[int | bool, ...]] = {
    "width": (0,), "polynomials": (False,), "accumulators": (1,), "tile": (1024,), "block": (4096,),
    "streaming": (False,), "reciprocals": (False,), "keep": (False,), "ahead": (False,), "online": (False,),
    "moments": (False,), "split": (0,), "threads": (False,),
}  # fmt: skip


def meaning_of(facts: ProblemFacts, policy: Policy = Policy.LIBRARY) -> Meaning:
    """The meaning of a problem. Raises `CannotWrite` naming what has no form here, or what the policy leaves out."""
    if facts.graph is None:
        raise CannotWrite(f"The problem could not be written as a graph: {facts.graph_refusal or facts.refusal}")
    meaning = read(facts.graph)
    if meaning.calls and policy is not Policy.LIBRARY:
        products = ", ".join(dict.fromkeys(call.op for call in meaning.calls))
        raise CannotWrite(
            f"The built-in coder leaves {products} to the library, which the policy {policy} does not allow."
        )
    return meaning


def write_candidate(facts: ProblemFacts, host: HostReport, schedule: Schedule, policy: Policy = Policy.LIBRARY) -> str:
    """A candidate's source under a schedule. Vectors wider than the host's become its own. Raises `CannotWrite`."""
    meaning = meaning_of(facts, policy)
    fitting = schedule.having(width=min(schedule.width, host.vector_bits or schedule.width))
    return _source(meaning, facts, fitting)


def _source(meaning: Meaning, facts: ProblemFacts, schedule: Schedule) -> str:
    return candidate_of(
        meaning,
        lower(meaning, schedule),
        facts.parameters,
        polynomials=schedule.polynomials,
        wide=schedule.width == 512,
        title="All of the model's operations in one compiled function.",
    )


def applicable(facts: ProblemFacts, base: Schedule = RICHEST) -> frozenset[str]:
    """The fields of `Schedule` that change this problem's candidate where the others are as in `base`."""
    meaning = meaning_of(facts)
    reference = _source(meaning, facts, base)
    return frozenset(
        name
        for name, others in _OTHERS.items()
        if any(_source(meaning, facts, base.having(**{name: other})) != reference for other in others)
    )
