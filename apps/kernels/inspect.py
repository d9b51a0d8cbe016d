"""Inspect a problem: everything known of it without trusting it, as plain facts."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from apps.kernels.evaluation import Progress
from apps.kernels.facts import Constant, ProblemFacts
from apps.kernels.host.processor import usable_memory
from apps.kernels.jail import ChannelBroken, ChannelTimeout, IsolationTooWeak, Jailed, Limits, Zygote, refusal
from apps.kernels.plain import BadPlain, Plain, from_plain
from apps.kernels.problem import BadProblem, ProblemSource, Value, read_problem
from apps.kernels.strength import Strength, keep_strength, kept_strength

ENTRY = "apps.kernels.inside.describe:main"
# What a description needs beyond torch itself; imported in the zygote once instead of in each jailed process.
PRELOADED = ("torch.export", "torch._dynamo", "torch._export", "torch.utils.flop_counter", "torch._decomp")
SECONDS = 120.0
SHARE_OF_MEMORY = 0.75  # of the host's, for everything that judging keeps alive at once
TORCH_MAPS = 6 << 30  # address space of a process that has imported torch and started its threads
EXAMINE_SECONDS = 20.0  # of trying wrong answers on the problem's own checks; most problems need one or two
MOST_TRIALS = 120  # smaller sizes that are tried where a problem is too large
Observe = Callable[[Progress], None]


def inspect(
    source: str,
    overrides: Mapping[str, Value] | None = None,
    *,
    zygote: Zygote | None = None,
    observe: Observe = lambda progress: None,
    memory_bytes: int | None = None,
    examine: bool = True,
    allow_weak_isolation: bool = False,
) -> ProblemFacts:
    """Facts and graph of a problem at these sizes, found out in the jail.

    Raises `BadProblem` for what its text alone shows (no Model, a syntax error, an unknown constant) and
    `jail.JailFailed` or `jail.ZygoteFailed` where the host can't jail; `jail.IsolationTooWeak`, one of the former, where
    it can't well enough and nobody has allowed it. A problem that can't be judged comes back with `refusal`.
    `memory_bytes` is what judging may take; by default three quarters of this host's memory. `examine` also tries the
    problem's own checks (`strength`), where nobody on this host has: what they can't tell is among the quirks.
    """
    problem = read_problem(source, overrides)
    known = ProblemFacts(constants=problem.constants, docstring=problem.docstring, quirks=problem.quirks)
    room = memory_bytes or int(usable_memory() * SHARE_OF_MEMORY)
    threads = len(os.sched_getaffinity(0))
    payload = {
        "source": problem.source,
        "threads": threads,
        "memory_bytes": room,
        "smaller": list(_smaller(problem, overrides or {})),
    }
    limits = Limits.computing(room + TORCH_MAPS, SECONDS, threads)
    with ExitStack() as stack:
        observe(Progress("inspect", "starting the jail"))
        jail = zygote or Zygote()
        if why := refusal(jail.planned_mode, allowed=allow_weak_isolation):
            raise IsolationTooWeak(why)
        if zygote is None:
            stack.callback(jail.close)
        jail.start()
        jail.preload(PRELOADED)
        known_strength = kept_strength(problem.source, jail.torch)
        if known_strength is not None and examine and not known_strength.complete:
            known_strength = None  # a judgement had less time for it
        payload["examine_seconds"] = EXAMINE_SECONDS if examine and known_strength is None else None
        jailed = stack.enter_context(jail.spawn(ENTRY, payload, limits=limits))
        found, strength = _listen(jailed, observe)
        if strength is not None:
            keep_strength(strength, problem.source, jail.torch)
    if known_strength is not None and not found.refusal:
        found = dataclasses.replace(found, refusal=known_strength.refusal, quirks=found.quirks + known_strength.notes())
    return dataclasses.replace(
        found,
        constants=known.constants,
        docstring=known.docstring,
        quirks=_without_doubles(known, found),
        refusal=_with_reason(found.refusal, known),
    )


def _with_reason(refusal: str | None, known: ProblemFacts) -> str | None:
    """The refusal as a sentence; of random output the line that draws it, where the text shows one."""
    if not refusal:
        return None
    if refusal.split()[0] not in ("forward", "get_inputs", "get_init_inputs"):
        refusal = refusal[0].upper() + refusal[1:]
    random = next((quirk for quirk in known.quirks if quirk.name == "random"), None)
    return f"{refusal} ({random.detail})." if random and "random" in refusal else refusal


def _listen(jailed: Jailed, observe: Observe) -> tuple[ProblemFacts, Strength | None]:
    """What the jailed description says in the end. Whatever it says wrongly is the problem's own fault."""
    try:
        return _heard(jailed, observe)
    except ChannelTimeout:
        refusal = f"Describing it took more than {SECONDS:.0f} s. Choose smaller sizes."
    except BadPlain as fault:
        refusal = f"Its process answered something else than facts ({fault})."
    except ChannelBroken:
        ended = jailed.wait(5.0)
        said = jailed.output.partition("Fatal Python error")[0].strip()[-600:]
        refusal = f"The reference's process {ended.words}." + (f" It printed:\n{said}" if said else "")
    return ProblemFacts(refusal=refusal), None


def _heard(jailed: Jailed, observe: Observe) -> tuple[ProblemFacts, Strength | None]:
    while True:
        message = jailed.receive()
        if "say" in message:
            observe(Progress("inspect", str(message["say"])[:200]))
        elif "facts" in message:
            strength = message.get("strength")
            return from_plain(ProblemFacts, message["facts"]), strength and from_plain(Strength, strength)
        else:
            raise BadPlain("neither news nor facts")


def _without_doubles(known: ProblemFacts, found: ProblemFacts) -> tuple[Plain, ...]:
    names = {quirk.name for quirk in known.quirks}
    return known.quirks + tuple(quirk for quirk in found.quirks if quirk.name not in names)


# --- smaller sizes ----------------------------------------------------------------------------------------------------


def _smaller(problem: ProblemSource, overrides: Mapping[str, Value]) -> Iterator[dict[str, Plain]]:
    """Choices of smaller constants with the sources they make, the gentlest first: one as a power of two, then all halved."""
    sizes = [c for c in problem.constants if isinstance(c.value, int) and not isinstance(c.value, bool) and c.value > 1]
    tried = 0
    for choice in _choices(sizes):
        if tried >= MOST_TRIALS:
            return
        try:
            source = read_problem(problem.original, {**overrides, **choice}).source
        except BadProblem:
            continue
        tried += 1
        yield {"overrides": choice, "source": source}


def _choices(sizes: list[Constant]) -> Iterator[dict[str, Value]]:
    for constant in sorted(sizes, key=lambda c: -int(c.value)):
        value = 1 << (int(constant.value) - 1).bit_length() - 1
        while value >= max(1, int(constant.value) >> 20):
            yield {constant.name: value}
            value //= 2
    for halvings in range(1, 16):
        yield {c.name: max(1, int(c.value) >> halvings) for c in sizes}
