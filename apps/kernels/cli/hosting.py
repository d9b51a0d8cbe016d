"""`host`: what this machine is, its ceilings, what isolation it can enforce, its noise."""

from __future__ import annotations

import json
from argparse import Namespace

from apps.kernels.cli import attacking
from apps.kernels.cli.exit_codes import GOOD, BadInput
from apps.kernels.cli.inputs import log
from apps.kernels.cli.tables import quantity, scaled, table
from apps.kernels.host.report import host_report
from apps.kernels.jail.isolation import SETTING
from apps.kernels.machine import Ceilings, HostReport
from apps.kernels.plain import to_plain


def run(options: Namespace) -> int:
    """Print the report; measuring the ceilings takes some seconds the first time. `--attacks` is a table of its own."""
    if options.attacks:
        return attacking.run(options)
    if options.mode:
        raise BadInput("--mode goes with --attacks.")
    report = host_report(observe=log)
    print(json.dumps(to_plain(report)) if options.json else described(report))
    return GOOD


def described(report: HostReport) -> str:
    """The report for a terminal."""
    caches = ", ".join(f"L{cache.level} {cache.bytes >> 10:,} KiB" for cache in report.caches)
    machine = [
        ("processor", f"{report.cpu_model}, {report.cores} cores, {report.vector_bits}-bit vectors"),
        ("memory", scaled(report.memory_bytes, "B")),
        ("caches", caches or "–"),
        ("torch", report.torch or "not installed"),
        *((f"{name}", version) for name, version in report.toolchains.items()),
        ("counters", report.counters_detail),
    ]
    parts = [table(machine), f"Ceilings\n{_ceilings(report)}"]
    rows = [(one.name, "yes" if one.enforced else "no", one.detail) for one in report.isolation]
    parts.append(f"Isolation: {report.isolation_level}{_verdict(report)}\n{table(rows)}")
    if report.noise:
        parts.append(
            "A/A noise (95% of judgements of the same code against itself stay below)\n"
            + table([(k, f"{v:.2%}") for k, v in report.noise.items()])
        )
    return "\n\n".join(parts)


def _verdict(report: HostReport) -> str:
    """What the level promises, and what follows where it is less than the host requires."""
    enough = ""
    if not report.isolates_enough:
        enough = (
            f"\n  {report.isolation_required} is required here: candidates are refused until that is provided or somebody "
            f"allows it ({SETTING}={report.isolation_level} or --allow-weak-isolation; on a server's host, an admin on "
            "its page)."
        )
    wrong = report.environment.get("isolation_setting")
    return f"\n  {report.isolation_guarantee}{enough}" + (f"\n  {wrong}" if wrong else "")


def _ceilings(report: HostReport) -> str:
    ceilings = report.ceilings
    rows = [(name, quantity(value, "GFLOP/s")) for name, value in ceilings.peak_gflops.items()]
    if ceilings.parallel_region_us is not None:
        rows.append(("an OpenMP region", quantity(ceilings.parallel_region_us, "µs")))
    if ceilings.page_fault_us is not None:
        rows.append(("a page fault", quantity(ceilings.page_fault_us, "µs")))
    if not rows:
        return f"  not measured: {report.environment.get('ceilings_unavailable', 'no reason given')}"
    return f"{table(rows)}\n\n  GB/s by working set\n{_bandwidths(ceilings)}"


def _bandwidths(ceilings: Ceilings) -> str:
    """One line for each mix and number of threads, one column for each working set."""
    sizes = sorted({row.working_set_bytes for row in ceilings.bandwidth})
    measured = {(row.mix, row.threads, row.working_set_bytes): row.gbytes_per_s for row in ceilings.bandwidth}
    lines = sorted({(row.mix, row.threads) for row in ceilings.bandwidth})
    rows = [
        (mix, str(threads), *(_rate(measured.get((mix, threads, size))) for size in sizes)) for mix, threads in lines
    ]
    return table(rows, ("mix", "threads", *(scaled(size, "B") for size in sizes)))


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"
