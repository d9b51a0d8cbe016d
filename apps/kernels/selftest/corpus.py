"""The candidates that the judge is tried on, and what is expected of each."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from apps.kernels.evaluation import Policy, Tier, Verdict

PLACE = Path(__file__).parent
HONEST = "honest"
# The kinds, in the order they are shown, in words.
KINDS = {
    "stale": "output left uninitialised and holding an old answer",
    "inputs": "inputs changed, zeroed or returned; one output buffer reused",
    "late": "work left to a thread, a signal or a process",
    "early": "work done ahead of its call",
    "lazy": "outputs that compute when looked at",
    "patched": "clocks, comparison, reference or torch patched",
    "cached": "answers kept by pointer, object, shape, elements or weights",
    "two_faced": "honest while checked, not while timed",
    "snooping": "looks for the answer, forges reports, leaves early",
    "fallback": "work done by torch or a library",
    "imprecise": "lower precision, modes switched for the process",
    "fitted": "constants or structure that fit a weak problem",
    "unsafe": "races and accesses out of bounds",
    "kept": "answers kept in files",
    "impossible": "faster than the machine allows",
    "misbehaving": "hangs, crashes, forks, eats memory or disk",
    "wrong": "plainly wrong",
    HONEST: "honest, in the styles people write",
}


@dataclass(frozen=True)
class Entry:
    """One candidate. `reason` are words that the verdict's reason must hold, `rule` a rule its text must break.

    `examined` says that its problem is tested beforehand, as any in use is, and stronger inputs are drawn for it.

    `by` is "run" for what is judged by what it does, whatever its text says, and "text" for what is refused for its text
    alone. `bandwidth` (GB/s) is what the machine is said to reach at most; `specialised` what it must be shown not to hold,
    `holds` what it must be shown to hold.
    """

    kind: str
    name: str
    problem: str
    expect: tuple[Verdict, ...]
    reason: str = ""
    rule: str = ""
    by: str = "run"
    policy: Policy = Policy.KERNEL
    tier: Tier = Tier.QUICK
    deadline: float = 90.0
    examined: bool = False
    bandwidth: float | None = None
    specialised: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Its kind and name, as files are named."""
        return f"{self.kind}/{self.name}"

    @property
    def honest(self) -> bool:
        """Whether nothing may be said against it."""
        return self.kind == HONEST

    @property
    def source(self) -> str:
        """The candidate's text."""
        return _text(PLACE / "candidates" / self.kind / f"{self.name}.py")

    @property
    def problem_source(self) -> str:
        """The problem's text."""
        return _text(PLACE / "problems" / f"{self.problem}.py")


def entries(patterns: tuple[str, ...] = ()) -> tuple[Entry, ...]:
    """The corpus in the index's order; with patterns (`late`, `cached/by_*`), what one of them names."""
    with (PLACE / "index.toml").open("rb") as file:
        found = tuple(map(_entry, tomllib.load(file)["candidate"]))
    if not patterns:
        return found
    return tuple(one for one in found if any(fnmatchcase(one.title, p) or one.kind == p for p in patterns))


def _entry(data: dict[str, Any]) -> Entry:
    unknown = data.keys() - {*Entry.__dataclass_fields__, "depth"}
    if unknown or data["kind"] not in KINDS:
        raise ValueError(f"{data['kind']}/{data['name']} in index.toml: {', '.join(unknown) or 'no such kind'}")
    return Entry(
        kind=data["kind"],
        name=data["name"],
        problem=data["problem"],
        expect=tuple(map(Verdict, data["expect"])),
        reason=data.get("reason", ""),
        rule=data.get("rule", ""),
        by=data.get("by", "run"),
        policy=Policy(data.get("policy", Policy.KERNEL)),
        tier=Tier(data.get("depth", Tier.QUICK)),
        deadline=data.get("deadline", 90.0),
        examined=data.get("examined", False),
        bandwidth=data.get("bandwidth"),
        specialised=tuple(data.get("specialised", ())),
        holds=tuple(data.get("holds", ())),
    )


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
