"""Two versions of a problem held against each other, or several runs beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count

from apps.runs.models import Run, Version
from apps.runs.presentation import extensions, figures, version_page
from apps.runs.presentation.advice import AdviceCard, cards
from apps.runs.presentation.measured import Measured, measured
from apps.runs.presentation.picking import worth_naming

REFERENCE = "reference"
OFFERED, LOOKED_AT = 200, 2000  # versions in a list to choose from; those of the problem that they are chosen among
_RELATED = ("run__problem", "run__sizing", "run__device__host", "run__best", "measurement", "parent")


@dataclass(frozen=True)
class Side:
    """One side: a version, or the problem's reference where `measured` is None."""

    key: str
    name: str
    source: str
    measured: Measured | None
    followed: AdviceCard | None = None


@dataclass(frozen=True)
class Fact:
    """One thing said of both sides, and whether it differs."""

    name: str
    left: str
    right: str
    differs: bool


def find(key: str) -> Version | None:
    """The version that `RUN.NUMBER` names, or None."""
    run, _, number = key.partition(".")
    if not (run.isdecimal() and number.isdecimal()):
        return None
    return Version.objects.select_related(*_RELATED).filter(run_id=run, number=number).first()


def key_of(version: Version) -> str:
    """`12.4`: the version as addresses name it."""
    return f"{version.run_id}.{version.number}"


def other_side(version: Version, against: str) -> Version | None:
    """What a version is compared with when an address names only the way: parent, best, an anchor that a room above
    offers, else the reference (None)."""
    if against == "parent":
        return find(key_of(version.parent)) if version.parent else None
    if against == "best":
        return find(key_of(version.run.best)) if version.run.best else None
    anchor = extensions.anchors.get(against)
    found = anchor.find(version) if anchor else None
    return find(key_of(found)) if found else None


def side(version: Version | None, reference: Version) -> Side:
    """One side; without a version the reference of the other side's problem."""
    if version is None:
        return Side(REFERENCE, f"reference of {reference.run.problem}", reference.run.problem.source, None)
    led = (
        cards(version.run.advices.filter(number=version.advice), over=not version.run.is_live) if version.advice else []
    )
    name = f"run {version.run_id} v{version.number}"
    return Side(key_of(version), name, version.source, measured(version), led[0] if led else None)


def facts(left: Side, right: Side) -> list[Fact]:
    """What stands beside the metrics: verdict, speed-up, circumstances."""
    eager = {"speed-up over eager": "1.00×"}
    a = _told(left.measured) if left.measured else eager
    b = _told(right.measured) if right.measured else eager
    both = bool(left.measured and right.measured)
    return [
        Fact(name, a.get(name, figures.NOT_KNOWN), b.get(name, figures.NOT_KNOWN), both and a.get(name) != b.get(name))
        for name in dict.fromkeys([*a, *b])
    ]


def _told(one: Measured) -> dict[str, str]:
    run = one.version.run
    return {
        "verdict": one.chip.word,
        "speed-up over eager": figures.speedup(one.ratio, *_interval(one)),
        "judged": one.tier,
        "device": str(one.measurement.device if one.measurement else run.device),
        "sizes": figures.sizing(run.sizing.overrides) or "as in the source",
        "profile": "on" if run.profile else "off",
        "author": one.version.author,
    }


def _interval(one: Measured) -> tuple[float | None, float | None]:
    row = one.measurement
    return (row.speedup_low, row.speedup_high) if row else (None, None)


def verdict(left: Side, right: Side) -> str:
    """How the two stand in time, by their intervals: clearly apart, or not to be told apart."""
    a, b = left.measured, right.measured
    if b is None or b.ratio is None:
        return f"{right.name} has no speed-up to compare: {b.chip.word if b else 'reference'}."
    if a is None or a.ratio is None:
        return f"{right.name} is {figures.speedup(b.ratio, *_interval(b))} over eager."
    (a_low, a_high), (b_low, b_high) = _interval(a), _interval(b)
    ratio = figures.ratio(b.ratio / a.ratio)
    if why := _not_comparable(a, b):
        return f"{ratio} by their speed-ups, but not comparable: {why}"
    if None in (a_low, a_high, b_low, b_high):
        return f"{ratio} by their speed-ups; no interval is known."
    if b_low > a_high or b_high < a_low:  # type: ignore[operator]
        return f"{right.name} is {ratio} as fast as {left.name}, beyond noise (their intervals don't meet)."
    return f"{ratio}: within noise (their intervals overlap)."


def _not_comparable(a: Measured, b: Measured) -> str:
    """Why the speed-ups of two measurements can't be held against each other, and what to do; empty where they can."""
    if a.version.run.sizing_id != b.version.run.sizing_id:
        return "they solve the problem at different sizes. Launch a run at the other's sizes that starts from this one."
    if _device(a) != _device(b):
        return "they were measured on different devices. Measure one again on the other's."
    return ""


def _device(one: Measured) -> int:
    """Where the measurement that is shown was made, which need not be the run's device."""
    return one.measurement.device_id if one.measurement else one.version.run.device_id


@dataclass(frozen=True)
class Environments:
    """Where both sides were measured: what differs, and what is the same."""

    differ: tuple[Fact, ...]
    same: tuple[Fact, ...]


def environments(left: Side, right: Side) -> Environments:
    """Isolation, device, compiler, threads and whatever else the evaluations say of it; how long judging took left out."""
    a = dict(_measured_in(left))
    b = dict(_measured_in(right))
    rows = [
        Fact(name, a.get(name, figures.NOT_KNOWN), b.get(name, figures.NOT_KNOWN), a.get(name) != b.get(name))
        for name in dict.fromkeys([*a, *b])
    ]
    return Environments(tuple(row for row in rows if row.differs), tuple(row for row in rows if not row.differs))


def _measured_in(side: Side) -> list[tuple[str, str]]:
    rows = version_page.environment(side.measured.evaluation) if side.measured else []
    return [(name, words) for name, words in rows if not name.startswith("seconds")]


def candidates_for(*shown: Version | None) -> list[Version]:
    """Versions of the same problem that could stand on a side, newest runs first, those shown always among them."""
    there = [version for version in shown if version is not None]
    numbers: dict[int, set[int]] = {}
    for version in there:
        numbers.setdefault(version.run_id, set()).add(version.number)
    figures_alone = ("number", "run", "measurement__speedup", "measurement__verdict")
    found = (
        Version.objects.filter(run__problem=there[0].run.problem_id).select_related("measurement").only(*figures_alone)
    )
    runs = {version.run_id: list[Version]() for version in there}
    for version in found.order_by("-run_id", "number")[:LOOKED_AT]:
        runs.setdefault(version.run_id, []).append(version)
    for version in there:
        if all(one.number != version.number for one in runs[version.run_id]):
            runs[version.run_id].append(version)
    offered: list[Version] = []
    for run in sorted(runs, key=lambda run: (run not in numbers, -run)):
        offered += worth_naming(runs[run], numbers.get(run, ()))
        if len(offered) >= OFFERED:
            break
    return offered


def settings_of(runs: Sequence[Run]) -> list[tuple[str, list[str], bool]]:
    """Each setting of several runs, and whether they differ in it."""
    counted = Version.objects.filter(run__in=[run.pk for run in runs]).order_by().values_list("run")
    counts = dict(counted.annotate(Count("pk")))
    rows: list[tuple[str, list[str]]] = [
        ("problem", [run.problem.title for run in runs]),
        ("sizes", [figures.sizing(run.sizing.overrides) or "as in the source" for run in runs]),
        ("language", [run.language for run in runs]),
        ("device", [str(run.device) for run in runs]),
        ("coder", [run.coder for run in runs]),
        ("profile", ["on" if run.profile else "off" for run in runs]),
        ("policy", [run.policy for run in runs]),
        ("iterations", [f"{run.iteration} of {run.iterations}" for run in runs]),
        ("candidates", [str(run.candidates) for run in runs]),
        ("versions", [str(counts.get(run.pk, 0)) for run in runs]),
        ("torch.compile", [figures.ratio(run.compiled_speedup) for run in runs]),
        ("why it ended", [run.reason or figures.NOT_KNOWN for run in runs]),
    ]
    return [(name, values, len(set(values)) > 1) for name, values in rows]
