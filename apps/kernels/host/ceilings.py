"""This machine's ceilings, measured once by a small C++ program of ours and kept by a digest of the machine's identity."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from apps.kernels.evaluation import Progress
from apps.kernels.host.processor import Processor, processor, usable_memory
from apps.kernels.host.store import digest, keep_measurement, measurements_directory, read_measurement
from apps.kernels.host.toolchains import host_compiler, tool_version
from apps.kernels.machine import Bandwidth, Cache, Ceilings
from apps.kernels.temporary import temporary

SOURCE = Path(__file__).with_name("ceilings.cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-fopenmp")
MIXES = 6
Observe = Callable[[Progress], None]


class CeilingsUnavailable(RuntimeError):
    """The ceilings can't be measured here; the message says what is missing."""


@dataclass(frozen=True)
class KeptCeilings:
    """Ceilings as they lie on disk: when they were measured, on what, and how far rounds lay apart (0.05 is 5%)."""

    measured: str
    machine: str
    ceilings: Ceilings
    spread: dict[str, float] = field(default_factory=dict)


def ceilings(*, observe: Observe = lambda progress: None, quick: bool = False) -> Ceilings:
    """The kept ceilings of this machine; where there are none, measures and keeps them (some ten seconds).

    `quick` measures nothing: without kept ceilings the answer is empty. Raises `CeilingsUnavailable`.
    """
    kept = kept_ceilings()
    if kept is not None:
        return kept.ceilings
    if quick:
        return Ceilings()
    with _device_alone(observe):
        kept = kept_ceilings()  # another process may have measured while this one waited
        if kept is None:
            kept = measure_ceilings(observe=observe)
            keep_ceilings(kept)
    return kept.ceilings


@contextmanager
def _device_alone(observe: Observe) -> Iterator[None]:
    """Holds the CPU's lock, so that nothing is judged meanwhile. Raises `CeilingsUnavailable` where it stays taken."""
    # Imported late: the judge stands above this room and imports it.
    from apps.kernels.judge.errors import HostCannotJudge
    from apps.kernels.judge.lock import device_lock

    try:
        with device_lock("cpu", waiting=lambda holder: observe(Progress("ceilings", f"waiting for process {holder}"))):
            yield
    except HostCannotJudge as problem:
        raise CeilingsUnavailable(str(problem)) from None


def kept_ceilings() -> KeptCeilings | None:
    """What was measured on a machine, compiler and program like these, or None."""
    return read_measurement(KeptCeilings, _place(machine_identity()))


def keep_ceilings(measured: KeptCeilings) -> None:
    """Keeps them as this machine's."""
    keep_measurement(measured, _place(machine_identity()))


def merge_ceilings(repeats: Sequence[KeptCeilings]) -> KeptCeilings:
    """The best of several measurements of one machine, figure by figure; seconds are summed, spreads the largest."""
    all_of = [repeat.ceilings for repeat in repeats]
    peaks: dict[str, float] = {}
    rows: dict[tuple[str, int, int], float] = {}
    spread: dict[str, float] = {}
    for repeat in repeats:
        for name, value in repeat.ceilings.peak_gflops.items():
            peaks[name] = max(value, peaks.get(name, 0.0))
        for b in repeat.ceilings.bandwidth:
            key = (b.mix, b.working_set_bytes, b.threads)
            rows[key] = max(b.gbytes_per_s, rows.get(key, 0.0))
        for name, value in repeat.spread.items():
            spread[name] = max(value, spread.get(name, 0.0))
    merged = Ceilings(
        peaks,
        tuple(Bandwidth(*key, value) for key, value in rows.items()),
        min((c.parallel_region_us for c in all_of if c.parallel_region_us is not None), default=None),
        min((c.page_fault_us for c in all_of if c.page_fault_us is not None), default=None),
        sum(c.seconds for c in all_of),
    )
    return KeptCeilings(repeats[-1].measured, repeats[-1].machine, merged, spread)


def machine_identity() -> str:
    """What the ceilings depend on: processor, cores in use, caches, compiler, and the program that measures."""
    here, compiler = processor(), host_compiler()
    version = tool_version(compiler) if compiler else None
    caches = " ".join(f"L{cache.level}:{cache.bytes}/{cache.shared_by}" for cache in here.caches)
    program = digest(SOURCE.read_text(), repr(working_sets(here)))
    return f"{here.model} | {here.cores} cores | {caches} | {compiler} {version} | {program}"


def measure_ceilings(
    *, observe: Observe = lambda progress: None, budget_ms: float = 25, rounds: int = 3
) -> KeptCeilings:
    """Builds the program with the host's compiler and runs it; best clean sample of all rounds.

    Raises `CeilingsUnavailable` where there is no compiler with OpenMP or the program fails.
    """
    start = time.monotonic()
    here = processor()
    sizes = working_sets(here, usable_memory())
    with temporary("ceilings") as directory:
        observe(Progress("ceilings", "building the program that measures this machine"))
        program = _build(directory)
        command = [str(program), str(here.cores), str(budget_ms), str(rounds), *map(str, sizes)]
        points = rounds * len(sizes) * MIXES * (2 if here.cores > 1 else 1)
        records = list(_run(command, points, observe))
    best, spread = _best_of_rounds(records)
    measured = Ceilings(
        peak_gflops={name: value for (kind, name), value in best.items() if kind == "peak"},
        bandwidth=tuple(
            Bandwidth(mix, int(size), int(threads), value)
            for (kind, name), value in best.items()
            if kind == "bandwidth"
            for mix, size, threads in [name.split("/")]
        ),
        parallel_region_us=best.get(("cost", "parallel_region")),
        page_fault_us=best.get(("cost", "page_fault")),
        seconds=round(time.monotonic() - start, 2),
    )
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return KeptCeilings(date, machine_identity(), measured, spread)


def working_sets(here: Processor, memory_bytes: int = 0) -> tuple[int, ...]:
    """Bytes to measure at: half of L1 and of L2 (of one core and of all), quarter, half and all of L3, 2 to 8 times L3.

    No more than an eighth of the memory where that is known. Processors without a listed cache are taken to have
    32 KiB, 1 MiB and 32 MiB.
    """
    caches = {cache.level: cache for cache in here.caches}
    l1 = caches.get(1, Cache(1, 32 << 10, 1))
    l2 = caches.get(2, Cache(2, 1 << 20, 1))
    last = caches.get(3, Cache(3, max(32 << 20, 8 * l2.bytes), here.cores))

    whole = here.bytes_in_all(last)
    sizes = {l1.bytes // 2, here.bytes_in_all(l1) // 2, l2.bytes // 2, here.bytes_in_all(l2) // 2}
    sizes.update(whole // part for part in (4, 2, 1))
    beyond = [whole * factor for factor in (2, 4, 8)]
    limit = memory_bytes // 8
    sizes.update(size for size in beyond if not limit or size <= limit)
    return tuple(sorted(sizes))


def _place(identity: str) -> Path:
    return measurements_directory() / "ceilings" / f"{digest(identity)}.json"


def _build(directory: Path) -> Path:
    compiler = host_compiler()
    if compiler is None:
        raise CeilingsUnavailable("no C++ compiler: install g++ (package g++) or clang++ (package clang) or set CXX")
    program = directory / "ceilings"
    try:
        done = subprocess.run(
            [compiler, *FLAGS, str(SOURCE), "-o", str(program)], capture_output=True, text=True, timeout=120
        )
    except (OSError, subprocess.SubprocessError) as problem:
        raise CeilingsUnavailable(f"{compiler} does not run: {problem}") from None
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line or "cannot find" in line]
        raise CeilingsUnavailable(f"{compiler} can't build it: {(lines or ['no message'])[0]}")
    return program


def _run(command: list[str], points: int, observe: Observe) -> Iterable[dict[str, object]]:
    """The program's records as they come; ends the program where the reader goes away."""
    environment = {"PATH": os.environ.get("PATH", ""), "OMP_PROC_BIND": "true", "OMP_DYNAMIC": "false"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    seen = 0
    try:
        for line in process.stdout or ():
            record = json.loads(line)
            yield record
            if record["kind"] == "bandwidth":
                seen += 1
                size = int(record["bytes"]) / 1024
                what = f"{record['mix']} of {size:.0f} KiB with {record['threads']} threads: {record['best']:.0f} GB/s"
                observe(Progress("ceilings", what, min(1.0, seen / points)))
        code = process.wait(timeout=10)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    if code != 0:
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise CeilingsUnavailable(f"the program that measures this machine ended with {name}")


def _best_of_rounds(
    records: Iterable[dict[str, object]],
) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """The best value by (kind, name), and by kind and name how far the rounds' own bests lie apart."""
    rounds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for record in records:
        kind = str(record["kind"])
        if kind == "peak":
            threads = "1" if record["threads"] == 1 else "all"
            rounds[kind, f"{record['name']}_{threads}"].append(_number(record["best"]))
        elif kind == "bandwidth":
            name = f"{record['mix']}/{record['bytes']}/{record['threads']}"
            rounds[kind, name].append(_number(record["best"]))
        elif kind == "cost":
            rounds[kind, str(record["name"])].append(_number(record["us"]))
    best = {key: min(values) if key[0] == "cost" else max(values) for key, values in rounds.items()}
    for precision in ("fp32", "fp64"):  # one core alone is all of them
        if ("peak", f"{precision}_1") in best:
            best.setdefault(("peak", f"{precision}_all"), best["peak", f"{precision}_1"])
    spread = {
        f"{kind}/{name}": round((max(values) - min(values)) / max(values), 4)
        for (kind, name), values in rounds.items()
        if len(values) > 1 and max(values) > 0
    }
    return best, spread


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise CeilingsUnavailable(f"the program that measures this machine said {value!r} where a number was due")
    return float(value)
