"""What a run may start from besides nothing: a person's own candidate, a version that is there, the built-in coder's best.

Each is a `Seed` of a launch order. The loop judges seeds first, as versions of iteration 0, and builds on the best of them.
Nothing is executed here: a candidate is read, and a host judges it like any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from apps.agents.coders import BUILTIN
from apps.agents.words import Assignment, Brief, CannotWrite, History, Seed
from apps.hosts.models import Device
from apps.kernels.candidate import BadCandidate, read_candidate
from apps.kernels.evaluation import Language, Policy
from apps.kernels.facts import ProblemFacts
from apps.kernels.plain import BadPlain, from_plain
from apps.people.models import Person
from apps.runs.launch import LaunchOrder, ready_sizing
from apps.runs.models import Sizing, Version
from apps.runs.refusals import LaunchRefused

LARGEST = 256 * 1024  # bytes of a candidate's text
MOST = 4  # seeds of a run: each is a judgement before the first iteration
FIELD = "own"


def own(person: Person | None, text: str | bytes, language: Language, policy: Policy) -> Seed:
    """A candidate that a person pasted or uploaded. Raises `LaunchRefused` where it is none, with the line to look at."""
    source = _text(text)
    if not source.strip():
        raise LaunchRefused("Paste the candidate to start from, or choose its file.", FIELD)
    try:
        candidate = read_candidate(source, policy)
    except BadCandidate as bad:
        where = f" (line {bad.line})" if bad.line is not None else ""
        raise LaunchRefused(f"This is no candidate{where}: {bad}", FIELD) from None
    except RecursionError:
        raise LaunchRefused("The candidate is nested too deeply to be read.", FIELD) from None
    if candidate.language is not language:
        raise LaunchRefused(
            f"The candidate's kernel is in {candidate.language.value}, the run's language is {language.value}. "
            "Choose that language, or another candidate.",
            FIELD,
        )
    return Seed(source, str(person) if person else "a person")


def of_version(version: Version) -> Seed:
    """A version that is there, with its author's plan, which the built-in coder goes on from."""
    return Seed(version.source, version.author, version.plan)


def builtin_best(sizing: Sizing, device: Device, language: Language, policy: Policy) -> Seed:
    """The built-in coder's best version of this problem at these sizes on this device; its first one where it wrote none yet.

    Raises `LaunchRefused` where the coder can't write this kernel, naming why.
    """
    best = (
        Version.objects.filter(
            run__sizing=sizing,
            run__device=device,
            run__language=language.value,
            run__policy=policy.value,
            run__imported__isnull=True,
            author=BUILTIN,
            measurement__verdict="correct",
            measurement__speedup__isnull=False,
        )
        .order_by("-measurement__speedup")
        .first()
    )
    return of_version(best) if best is not None else _first(sizing, device, language, policy)


def asked(person: Person | None, order: LaunchOrder, *, builtin: bool, text: str | bytes) -> LaunchOrder:
    """The order with what a launch asks to start from besides: the built-in coder's best, a person's own candidate.

    Raises `LaunchRefused`; also where the problem's facts are not there yet.
    """
    language, policy = Language(order.language), Policy(order.policy)
    seeds = list(order.seeds)
    if text.strip():
        seeds.append(own(person, text, language, policy))
    if builtin:
        host, _, name = order.device.partition("/")
        device = Device.objects.select_related("host").filter(host__name=host, name=name, retired=False).first()
        if device is not None:  # one that is not there is refused by the launch itself
            sizing = ready_sizing(order.problem, order.overrides)
            seeds.append(builtin_best(sizing, device, language, policy))
    return replace(order, seeds=distinct(seeds))


def distinct(seeds: Iterable[Seed]) -> tuple[Seed, ...]:
    """Those of different text, in order. Raises `LaunchRefused` where there are more than a run takes."""
    found = tuple({seed.source.strip(): seed for seed in seeds}.values())
    if len(found) > MOST:
        raise LaunchRefused(f"A run starts from at most {MOST} versions.", FIELD)
    return found


def _first(sizing: Sizing, device: Device, language: Language, policy: Policy) -> Seed:
    from apps.agents.builtin import BuiltinCoder

    report = device.host.facts
    try:
        facts = from_plain(ProblemFacts, sizing.facts) if sizing.facts else None
    except BadPlain:
        facts = None
    if facts is None or report is None:
        raise LaunchRefused("The built-in coder needs the problem's facts first: a host is still looking at it.", FIELD)
    assignment = Assignment(
        problem=sizing.problem.source,
        facts=facts,
        host=report,
        language=language,
        policy=policy,
        overrides=sizing.overrides,
    )
    try:
        writing = BuiltinCoder().write(Brief(assignment, History(), 1), lambda text: None)
    except CannotWrite as refusal:
        raise LaunchRefused(f"The built-in coder can't write this kernel: {refusal}", FIELD) from None
    return Seed(writing.source, BUILTIN, writing.plan)


def _text(text: str | bytes) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "replace"))
    if size > LARGEST:
        raise LaunchRefused(f"The candidate has {size} bytes; it may have {LARGEST}.", FIELD)
    try:
        source = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise LaunchRefused("The file is not UTF-8 text. A candidate is a Python source.", FIELD) from None
    if "\x00" in source:
        raise LaunchRefused("The text holds NUL characters, so it is no Python source.", FIELD)
    return source
