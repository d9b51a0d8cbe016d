"""What became of a run, as the command line prints it and scripts read it."""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.kernels.plain import Plain
from apps.runs import wording
from apps.runs.measurements import version_data
from apps.runs.models import Run, Version

SCHEMA = 1


@dataclass(frozen=True)
class SpeedUpFound:
    """Median over eager with its 95% interval; 1.0 without one where the reference stays."""

    median: float | None
    ci95: tuple[float, float] | None


@dataclass(frozen=True)
class Spend:
    """What the run took. `cost_usd` is null where a price is unknown; `estimated`: some server counted no tokens."""

    seconds: float | None
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    estimated: bool = False


@dataclass(frozen=True)
class Summary:
    """One object for `optimize --json`. Every key is always there; what is not known is null.

    `result` is the number of the version to use (null: the reference stays), `source` its text. `versions` hold VERSION of
    docs/api.md each, with its `source`.
    """

    run: int
    problem: str
    digest: str
    overrides: dict[str, Plain]
    device: str
    language: str
    policy: str
    coder: str
    profile: bool
    iterations: int
    state: str
    reason: str
    outcome: str | None
    speedup: SpeedUpFound
    compiled_speedup: float | None
    result: int | None
    attempt: int | None
    source: str | None
    spend: Spend
    versions: tuple[dict[str, Plain], ...] = field(default_factory=tuple)
    schema: int = SCHEMA


def summary_of(run: Run) -> Summary:
    """The run as it stands in its rows."""
    versions = Version.objects.filter(run=run).select_related("parent", "measurement").order_by("number")
    interval = (run.speedup_low, run.speedup_high)
    took = (run.finished_at - run.started_at).total_seconds() if run.finished_at and run.started_at else None
    return Summary(
        run=run.pk,
        problem=run.problem.title,
        digest=run.problem.digest,
        overrides=run.sizing.overrides,
        device=str(run.device),
        language=run.language,
        policy=run.policy,
        coder=run.coder,
        profile=run.profile,
        iterations=run.iteration,
        state=run.state,
        reason=run.reason,
        outcome=run.outcome or None,
        speedup=SpeedUpFound(run.speedup, (interval[0], interval[1]) if interval[0] and interval[1] else None),
        compiled_speedup=run.compiled_speedup,
        result=run.result.number if run.result else None,
        attempt=run.best.number if run.best else None,
        source=run.result.source if run.result else None,
        spend=Spend(
            took, run.tokens_in, run.tokens_out, None if run.cost_unknown else float(run.cost_usd), run.cost_estimated
        ),
        versions=tuple(_version(version, run) for version in versions),
    )


def _version(version: Version, run: Run) -> dict[str, Plain]:
    parent = version.parent.number if version.parent else None
    told = version_data(version, version.measurement, parent) if version.measurement else {"number": version.number}
    return {**told, "is_best": run.best_id == version.pk, "source": version.source}


def table(summary: Summary) -> str:
    """The versions and the result as a table for a terminal."""
    rows = [("version", "parent", "verdict", "speed-up", "95%", "time", "what")]
    for version in summary.versions:
        mark = "*" if version["number"] == summary.result else " "
        ratio, low, high = version.get("speedup"), version.get("speedup_low"), version.get("speedup_high")
        spent = version.get("candidate_ms")
        rows.append(
            (
                f"v{version['number']}{mark}",
                f"v{version['parent']}" if version.get("parent") else "",
                str(version.get("verdict", "")).replace("_", " "),
                wording.times(ratio) if ratio else "",
                f"[{low:.2f}, {high:.2f}]" if low and high else "",
                f"{spent:.3g} ms" if spent else "",
                wording.line(str(version.get("summary", "")), 60),
            )
        )
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join([*lines, "", *_result(summary)])


def _result(summary: Summary) -> list[str]:
    compiled = f" torch.compile: {wording.times(summary.compiled_speedup)}." if summary.compiled_speedup else ""
    spent = f" {summary.spend.seconds:.0f} s." if summary.spend.seconds is not None else ""
    return [
        f"Run {summary.run} {summary.state}: {summary.reason}",
        f"On {summary.device}.{compiled}{spent}{_money(summary.spend)}",
    ]


def _money(spend: Spend) -> str:
    """Tokens and money, where a model was asked."""
    if not spend.tokens_in and not spend.tokens_out:
        return ""
    cost = "its price is unknown" if spend.cost_usd is None else f"${spend.cost_usd:.4f}"
    about = " (estimated)" if spend.estimated else ""
    return f" {spend.tokens_in:,} tokens in, {spend.tokens_out:,} out: {cost}{about}."
