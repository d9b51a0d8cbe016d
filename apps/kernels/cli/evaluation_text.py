"""An evaluation for a terminal: the verdict first, then what it rests on."""

from __future__ import annotations

from apps.kernels.cli.tables import quantity, table
from apps.kernels.evaluation import Evaluation, Profile, SpeedUp, Time, Timing, Verdict

SHOWN_METRICS = 24


def described(evaluation: Evaluation) -> str:
    """The evaluation in a screenful."""
    parts = [_headline(evaluation)]
    if evaluation.detail and evaluation.verdict is not Verdict.CORRECT and not evaluation.rejections:
        parts.append(_indented(evaluation.detail))
    if evaluation.rejections:
        parts.append(table([(r.rule, r.where, r.detail) for r in evaluation.rejections], ("rule", "where", "what")))
    if evaluation.verdict is Verdict.BUILD_FAILED and evaluation.build.log and not evaluation.detail:
        parts.append(_indented(evaluation.build.log))
    if evaluation.timing.reference:
        parts.append(_timing(evaluation.timing))
    parts.append(table(_facts(evaluation)))
    if evaluation.profile.metrics or evaluation.profile.unavailable:
        parts.append(_profile(evaluation.profile))
    return "\n\n".join(part for part in parts if part)


def _headline(evaluation: Evaluation) -> str:
    words = [evaluation.verdict.value]
    if evaluation.timing.outcome:
        words.append(evaluation.timing.outcome.value.replace("_", " "))
    if evaluation.speedup is not None:
        words.append(f"{evaluation.speedup:.2f}×")
    return f"{', '.join(words)}  (policy {evaluation.policy.value}, {evaluation.tier.value})"


def _timing(timing: Timing) -> str:
    rows = [
        (name, f"{time.median_ms:.4g} ms", f"{time.ci95_ms[0]:.4g} – {time.ci95_ms[1]:.4g}")
        for name, time in _times(timing)
        if time
    ]
    lines = [table(rows, ("", "median", "95%"))]
    if timing.speedup:
        lines.append(_speedup("over eager", timing.speedup))
    if timing.speedup_over_compiled:
        lines.append(_speedup("over torch.compile", timing.speedup_over_compiled))
    lines += [f"  note: {note}" for note in timing.notes]
    return "\n".join(lines)


def _times(timing: Timing) -> tuple[tuple[str, Time | None], ...]:
    return (
        ("reference", timing.reference),
        ("torch.compile", timing.compiled_reference),
        ("candidate", timing.candidate),
    )


def _speedup(name: str, speedup: SpeedUp) -> str:
    words = f"  {speedup.median:.3f}× {name}, 95% {speedup.ci95[0]:.3f} – {speedup.ci95[1]:.3f}"
    if speedup.decision_interval and speedup.level is not None and speedup.margin is not None:
        low, high = speedup.decision_interval
        words += f"; decided at {speedup.level:.1%}: {low:.3f} – {high:.3f} against a margin of {speedup.margin:.1%}"
    if speedup.aa is not None:
        words += f"; A/A {speedup.aa:.3f}"
    return words


def _facts(evaluation: Evaluation) -> list[tuple[str, str]]:
    correctness = evaluation.correctness
    rows = []
    if correctness.trials:
        limit = f", largest error {quantity(correctness.max_error)} of {quantity(correctness.tolerance)} allowed"
        known = correctness.max_error is not None
        rows.append(("checks", f"{correctness.passed} of {correctness.trials} passed{limit if known else ''}"))
    rows += [
        (row.name, row.detail if row.of_problem else f"{row.word} {row.detail}".rstrip())
        for row in evaluation.robustness
    ]
    if evaluation.library_calls:
        rows.append(("library calls", ", ".join(evaluation.library_calls)))
    if evaluation.build.seconds is not None:
        rows.append(("build", f"{evaluation.build.seconds:.2f} s"))
    if evaluation.setup.seconds is not None:
        rows.append(("set-up", f"{evaluation.setup.seconds:.2f} s, {quantity(evaluation.setup.bytes, 'bytes')}"))
    level = evaluation.isolation.get("level")
    if level:
        rows.append(("isolation", str(level)))
    rows.append(("took", f"{evaluation.seconds:.1f} s" + _split(evaluation.split)))
    return rows


def _split(split: dict[str, float]) -> str:
    parts = [f"{name} {seconds:.1f}" for name, seconds in split.items() if seconds >= 0.05]
    return f" ({', '.join(parts)})" if parts else ""


def _profile(profile: Profile) -> str:
    lines = [f"Profile ({profile.tier})"]
    if profile.bottleneck:
        found = profile.bottleneck
        shown = f"{found.metric} {quantity(found.value)} against {quantity(found.threshold)}"
        lines.append(f"  bottleneck: {found.name} ({shown}). {found.explanation}")
    rows = [
        (metric.name, quantity(metric.value, metric.unit), metric.source) for metric in profile.metrics[:SHOWN_METRICS]
    ]
    lines.append(table(rows))
    lines += [f"  {missing.name}: not measured, {missing.why}" for missing in profile.unavailable]
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.strip().splitlines()[:40])
