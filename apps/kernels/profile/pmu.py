"""Hardware counters through `perf stat`, where this host has them: IPC, cache and branch misses, top-down level 1."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.evaluation import Metric
from apps.kernels.host.processor import ROOT
from apps.kernels.host.toolchains import find_tool
from apps.kernels.profile.names import metric
from apps.kernels.profile.runner import ProfiledRunner
from apps.kernels.temporary import temporary

EVENTS = ("cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses", "dTLB-load-misses")
TOPDOWN = ("slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound")
# A count that the event was live for less than this share of is scaled up too far to be believed.
_LIVE_ENOUGH = 5.0


class NoCounts(RuntimeError):
    """perf could not count here; the message says why."""


@dataclass(frozen=True)
class Count:
    """One event's count, scaled by perf where it shared a counter; None where it was not counted or not supported."""

    event: str
    value: float | None
    why: str = ""


def count_events(runner: ProfiledRunner, calls: int) -> tuple[Count, ...]:
    """Counts while so many calls run. Raises `NoCounts`."""
    perf = find_tool("perf")
    if perf is None:
        raise NoCounts("perf is not installed (package linux-perf or linux-tools)")
    events = [*EVENTS, *(TOPDOWN if has_topdown() else ())]
    with temporary("perf") as directory:
        output = directory / "counts"
        command = [perf, "stat", "-x,", "-o", str(output), "-e", ",".join(events), "-p", str(runner.pid)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=_environment())
        try:
            time.sleep(0.1)  # perf attaches; there is nothing to wait for
            if process.poll() is None:
                runner.call(calls)
                process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            raise NoCounts("perf stat did not stop") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
        if not output.exists() or not output.read_text().strip():
            raise NoCounts(f"perf stat: {errors.decode(errors='replace').strip()[:200] or 'no counts'}")
        return read_counts(output.read_text().splitlines())


def has_topdown(root: Path = ROOT) -> bool:
    """Whether the processor's event source names Intel's top-down slots (Ice Lake and newer)."""
    sources = root / "sys/bus/event_source/devices"
    return any((sources / pmu / "events/topdown-retiring").exists() for pmu in ("cpu", "cpu_core"))


def read_counts(lines: Iterable[str]) -> tuple[Count, ...]:
    """Counts from `perf stat -x,`: value, unit, event, time running, percent running, then metrics that are left alone.

    Events of a hybrid processor's two kinds of core are summed; modifiers and the name of the source are dropped.
    Lines that carry a metric alone, comments and empty ones are passed over.
    """
    values: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    for line in lines:
        fields = line.strip().split(",")
        if line.startswith("#") or len(fields) < 3 or not fields[2]:
            continue
        event = _plain_event(fields)
        if fields[0] in ("<not supported>", "<not counted>"):
            values.setdefault(event, None)
            reasons.setdefault(event, fields[0].strip("<>"))
            continue
        value, live = _number(fields[0]), _number(fields[4]) if len(fields) > 4 else None
        if value is None:
            continue
        if live is not None and live < _LIVE_ENOUGH:
            values.setdefault(event, None)
            reasons.setdefault(event, f"counted {live:.0f}% of the time only")
            continue
        values[event] = (values.get(event) or 0.0) + value
    return tuple(Count(event, value, "" if value is not None else reasons[event]) for event, value in values.items())


def counter_metrics(counts: Iterable[Count], calls: int) -> tuple[Metric, ...]:
    """Metrics per call and ratios from counts; a ratio is there only where both of its counts are."""
    known = {count.event: count.value for count in counts if count.value is not None}
    found = [
        metric(name, known[event] / calls, "perf stat")
        for event, name in (
            ("cycles", "cycles"),
            ("instructions", "instructions"),
            ("dTLB-load-misses", "dtlb_load_misses"),
        )
        if event in known
    ]
    ratios = (
        ("ipc", "instructions", "cycles"),
        ("cache_miss_share", "cache-misses", "cache-references"),
        ("branch_miss_share", "branch-misses", "branches"),
        ("topdown_retiring", "topdown-retiring", "slots"),
        ("topdown_bad_speculation", "topdown-bad-spec", "slots"),
        ("topdown_frontend_bound", "topdown-fe-bound", "slots"),
        ("topdown_backend_bound", "topdown-be-bound", "slots"),
    )
    found += [metric(n, known[a] / known[b], "perf stat") for n, a, b in ratios if a in known and known.get(b)]
    if "cache-misses" in known and known.get("instructions"):
        found.append(
            metric(
                "cache_misses_per_kilo_instruction", 1e3 * known["cache-misses"] / known["instructions"], "perf stat"
            )
        )
    return tuple(found)


def _plain_event(fields: list[str]) -> str:
    """`cpu_core/cycles/u`, `cycles:u` and `cycles` are one event."""
    found = re.fullmatch(r"(?:cpu\w*/)?([^/:]+)(?:/[a-zA-Z]*)?(?::[a-zA-Z]+)?", fields[2].strip())
    return found[1] if found else fields[2].strip()


def _number(text: str) -> float | None:
    try:
        return float(text.replace("%", ""))
    except ValueError:
        return None


def _environment() -> dict[str, str]:
    """perf writes numbers by the locale: a decimal comma would be read as a separator."""
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
