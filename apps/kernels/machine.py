"""What a host says of itself: processor, compilers, measured ceilings, what isolation it can enforce, its A/A noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from apps.kernels.plain import Plain

SCHEMA = 1


@dataclass(frozen=True)
class Cache:
    """One level of cache as the kernel lists it: bytes in one instance, and how many logical processors share it."""

    level: int
    bytes: int
    shared_by: int


@dataclass(frozen=True)
class Bandwidth:
    """Measured GB/s (1e9) for a mix of reads and writes, a working set over all threads, and a number of threads.

    `mix` is read, write, copy, copy_nt, triad or write_nt; bytes counted are those the program names (no write-allocate).
    """

    mix: str
    working_set_bytes: int
    threads: int
    gbytes_per_s: float


def mix_in_words(mix: str) -> str:
    """A mix of reads and writes as people say it; an unknown one as it is."""
    plain, _, kind = mix.partition("_")
    return f"{plain} past the caches" if kind == "nt" else mix


def peak_in_words(name: str) -> str:
    """A key of `Ceilings.peak_gflops` as people say it: `float32, all threads`."""
    kind, _, threads = name.partition("_")
    number = {"fp32": "float32", "fp64": "float64"}.get(kind, kind)
    return f"{number}, {'one thread' if threads == '1' else f'{threads} threads'}" if threads else number


@dataclass(frozen=True)
class Ceilings:
    """What this machine can do at most, measured here once (`seconds` of measuring)."""

    peak_gflops: dict[str, float] = field(default_factory=dict)  # "fp32_1", "fp32_all", "fp64_all"
    bandwidth: tuple[Bandwidth, ...] = ()
    parallel_region_us: float | None = None
    page_fault_us: float | None = None
    seconds: float = 0.0


class IsolationLevel(StrEnum):
    """How well a host keeps foreign code in. What each level promises is `guarantee`."""

    FULL = "full"
    PARTIAL = "partial"
    WEAK = "weak"

    @property
    def guarantee(self) -> str:
        """What foreign code can and can't do at this level, in a sentence or two."""
        return _GUARANTEES[self]

    def at_least(self, other: IsolationLevel) -> bool:
        """Whether this level promises all that the other one does."""
        order = list(IsolationLevel)
        return order.index(self) <= order.index(other)


_GUARANTEES = {
    IsolationLevel.FULL: (
        "Foreign code lives in a file system, a process table and a network of its own in which nothing of the host can be "
        "named, behind system-call filters in two phases; its processes can't outlive the judgement."
    ),
    IsolationLevel.PARTIAL: (
        "Foreign code can't open files but the system's and Python's, reach a network or touch another process, because the "
        "kernel refuses it; it shares the host's process table, and file names can be guessed at."
    ),
    IsolationLevel.WEAK: (
        "Foreign code can read what the judge's user can, or reach other processes or the network. Only for code that "
        "somebody has read, or on a machine that holds nothing else."
    ),
}
DEFAULT_REQUIRED = IsolationLevel.PARTIAL


@dataclass(frozen=True)
class Isolation:
    """One thing a jail may enforce here: whether it does, and by what or why not."""

    name: str
    enforced: bool
    detail: str


@dataclass(frozen=True)
class DeviceReport:
    """One device: its CPU (`kind` cpu) or one GPU. `languages` are those that can be judged on it now."""

    name: str
    kind: str
    model: str
    memory_bytes: int
    languages: tuple[str, ...]


@dataclass(frozen=True)
class HostReport:
    """A host: what runs there and how well it can judge. `isolation_level` is an `IsolationLevel`.

    Below `isolation_required`, which the host's own setting says, candidates are refused until an admin allows them.
    """

    cpu_model: str
    cores: int
    vector_bits: int
    memory_bytes: int
    caches: tuple[Cache, ...]
    devices: tuple[DeviceReport, ...]
    toolchains: dict[str, str]
    torch: str | None
    ceilings: Ceilings
    isolation: tuple[Isolation, ...]
    isolation_level: str
    counters: bool
    counters_detail: str
    noise: dict[str, float] = field(
        default_factory=dict
    )  # A/A: kind of call -> |log ratio| that 95% of judgements stay below
    environment: dict[str, Plain] = field(default_factory=dict)
    isolation_required: str = DEFAULT_REQUIRED.value
    schema: int = SCHEMA

    @property
    def isolates_enough(self) -> bool:
        """Whether candidates may run there without anybody's leave."""
        try:
            return IsolationLevel(self.isolation_level).at_least(IsolationLevel(self.isolation_required))
        except ValueError:  # a level that this version doesn't know
            return False

    @property
    def isolation_guarantee(self) -> str:
        """What its level promises, empty for a level that this version doesn't know."""
        known = self.isolation_level in list(IsolationLevel)
        return IsolationLevel(self.isolation_level).guarantee if known else ""

    @property
    def missing_isolation(self) -> tuple[Isolation, ...]:
        """What it does not enforce."""
        return tuple(row for row in self.isolation if not row.enforced)

    def roof(self, mix: str, working_set_bytes: int, threads: int | None = None) -> float | None:
        """GB/s measured here for the nearest working set not smaller than the one asked for, or None if never measured."""
        wanted = threads or self.cores
        rows = [b for b in self.ceilings.bandwidth if b.mix == mix and b.threads == wanted]
        if not rows:
            return None
        larger = [b for b in rows if b.working_set_bytes >= working_set_bytes]
        chosen = (
            min(larger, key=lambda b: b.working_set_bytes) if larger else max(rows, key=lambda b: b.working_set_bytes)
        )
        return chosen.gbytes_per_s
