"""What a run knows, in words for a model: the problem's facts, the machine, versions, failures, advice."""

from __future__ import annotations

from collections.abc import Sequence

from apps.agents import memory, profiler
from apps.agents.words import Advice, Attempt, Diagnosis, History, Holding
from apps.agents.writers.prompts import Explained
from apps.kernels.evaluation import OF_PROBLEM, Bottleneck, Metric, Policy
from apps.kernels.facts import ProblemFacts, TensorFact
from apps.kernels.machine import HostReport

_MIXES = {"read": "read", "copy": "copied with plain stores", "copy_nt": "copied with non-temporal stores"}
POLICIES = {
    Policy.KERNEL: "All of the work is done by your own kernels. PyTorch operations that compute anything are refused.",
    Policy.LIBRARY: "The work is done by your own kernels; only matrix products and convolutions may be PyTorch's "
    "(`torch.mm`, `torch.addmm`, `torch.bmm`, `F.linear`, `F.conv2d` ...). Fuse everything around them into a kernel.",
}


def facts(known: ProblemFacts, overrides: dict[str, int | float | bool | str]) -> str:
    """Shapes, types, names and amounts."""
    lines = [f"- {_tensor(one)}" for one in (*known.inputs, *known.parameters, *known.outputs)]
    if known.init_inputs:
        lines.append(f"- constructor arguments: {', '.join(map(repr, known.init_inputs))}")
    if overrides:
        lines.append("- sizes set for this run: " + ", ".join(f"{name} = {value}" for name, value in overrides.items()))
    if known.flops is not None and known.compulsory_bytes:
        lines.append(
            f"- {known.flops:.4g} FLOP as written, {known.compulsory_bytes:.4g} bytes that must be moved: "
            f"{known.flops / known.compulsory_bytes:.3g} FLOP a byte"
        )
    if known.operators:
        lines.append("- operations: " + ", ".join(f"{count} {name}" for name, count in known.operators.items()))
    # that the checks would take zeros for an answer is for people to know, not for who writes the answer
    lines += [f"- {quirk.name}: {quirk.detail}" for quirk in known.quirks if quirk.name not in OF_PROBLEM]
    return "\n".join(lines) or "- none are known beyond the source"


def machine(host: HostReport) -> str:
    """Cores, vector width, caches, compilers and measured ceilings."""
    lines = [f"- {host.cpu_model}: {host.cores} cores, vectors of {host.vector_bits} bits"]
    lines += [f"- L{one.level} cache: {one.bytes // 1024} KiB, shared by {one.shared_by}" for one in host.caches]
    lines += [f"- {name}: {version}" for name, version in sorted(host.toolchains.items())]
    peaks = host.ceilings.peak_gflops
    if peaks:
        lines.append(
            "- arithmetic: " + ", ".join(f"{value:.4g} GFLOP/s {name}" for name, value in sorted(peaks.items()))
        )
    large = max((one.working_set_bytes for one in host.ceilings.bandwidth), default=0)
    roofs = [(words, roof) for mix, words in _MIXES.items() if (roof := host.roof(mix, large)) is not None]
    if roofs:
        lines.append("- memory: " + ", ".join(f"{roof:.4g} GB/s {words}" for words, roof in roofs))
    if (cost := host.ceilings.parallel_region_us) is not None:
        lines.append(f"- entering a parallel region costs {cost:.3g} us")
    if (cost := host.ceilings.page_fault_us) is not None:
        lines.append(f"- the first touch of a fresh page costs {cost:.3g} us")
    return "\n".join(lines)


def best(attempt: Attempt) -> str:
    """The version to start from, with its speed and what was measured of it."""
    said = profiler.summary(attempt.evaluation)
    bottleneck = attempt.evaluation.profile.bottleneck
    why = f"\n{bottleneck.explanation}" if bottleneck is not None else ""
    source = attempt.writing.source.strip()
    return f"\n# The version to start from, v{attempt.number}\n\n{said}{why}\n\n```python\n{source}\n```\n"


def failures(history: History) -> str:
    """What failed and why, the newest last."""
    lines = [f"- {line}" for line in memory.failures(history)]
    return "\n# What failed so far, and must not happen again\n\n" + "\n".join(lines) + "\n" if lines else ""


def diagnosis(found: Diagnosis | None, failed: Attempt) -> str:
    """How the Verifier reads a failure, with the line it speaks of as the candidate has it."""
    if found is None:
        return ""
    line = failed.writing.source.splitlines()[found.line - 1].strip()
    return (
        f"\n# How the Verifier reads it\n\n{found.wrong}\nLine {found.line}: `{line}`\nTo change: {found.change}\n\n"
        "The judge's own words are certain, this reading of them is not.\n"
    )


def hints(history: History) -> str:
    """What people said."""
    if not history.hints:
        return ""
    return "\n# What the people of this run say\n\n" + "\n".join(f"- {hint}" for hint in history.hints) + "\n"


def advice(given: Advice | None) -> str:
    """The change to make now."""
    if given is None:
        return ""
    return f"\n# The change to make now\n\nHeld back by: {given.bottleneck}.\n{given.change}\n{_evidence(given)}"


def past(advices: Sequence[Advice], holdings: Sequence[Holding], history: History) -> str:
    """Every advice so far, and whether what it predicted came."""
    lines = [_outcome(one, next((h for h in holdings if h.advice == one.number), None), history) for one in advices]
    return "\n# Advice so far, and what came of it\n\n" + "\n".join(lines) + "\n" if lines else ""


def given(advices: Sequence[Advice]) -> str:
    """Advices of this very turn: the next one must be another."""
    if not advices:
        return ""
    lines = "\n".join(f"- {one.bottleneck}: {one.change}" for one in advices)
    return (
        f"\n# Already advised for this turn\n\n{lines}\n\nOther candidates follow these. Advise a different change.\n"
    )


def metrics(best: Attempt, parent: Attempt | None, explained: dict[str, Explained]) -> str:
    """PyTorch's figures, the best version's and those of the version it came from side by side, with what is normal here."""
    mine = profiler.metrics(best.evaluation)
    columns = {f"v{best.number}": mine}
    if reference := profiler.reference_metrics(best.evaluation):
        columns = {"PyTorch": reference} | columns
    if parent is not None:
        columns[f"v{parent.number}"] = profiler.metrics(parent.evaluation)
    in_its_column = {profiler.OF_REFERENCE + name for name in reference if name in mine}
    lines = [_row("metric", *columns, "meaning", "normal"), "|---" * (len(columns) + 3) + "|"]
    for name in mine:
        if name in in_its_column:
            continue
        words = explained.get(name, Explained("", ""))
        lines.append(_row(name, *(_raw(side.get(name)) for side in columns.values()), words.meaning, words.normal))
    return "\n".join(lines) + "\n"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def found(bottleneck: Bottleneck | None) -> str:
    """What the fixed table of bottlenecks says."""
    if bottleneck is None:
        return ""
    return f"\nA fixed table of thresholds reads this as: {bottleneck.name}. {bottleneck.explanation}\n"


def _raw(metric: Metric | None) -> str:
    """A figure as evidence and predictions speak of it: shares from 0 to 1, bytes as they are; a dash for none."""
    return f"{metric.value:.5g} {metric.unit}".rstrip() if metric is not None else "-"


def _tensor(one: TensorFact) -> str:
    if one.value is not None:
        return f"{one.kind} `{one.name}`: {one.value!r}"
    shape = "x".join(map(str, one.shape)) or "scalar"
    where = f" (state_dict: `{one.target}`)" if one.target else ""
    strides = f", strides {one.strides}" if one.strides and not _contiguous(one) else ""
    return f"{one.kind} `{one.name}`{where}: {shape} {one.dtype}{strides}"


def _contiguous(one: TensorFact) -> bool:
    step = 1
    for size, stride in zip(reversed(one.shape), reversed(one.strides), strict=False):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _evidence(given: Advice) -> str:
    lines = [
        f"- {one.metric} is {one.value:.4g} {one.unit} ({one.relation} {one.threshold:.4g})" for one in given.evidence
    ]
    lines += [f"- {one.metric} should become {one.ratio:.3g} times what it is" for one in given.expected]
    return "\n".join(lines) + "\n" if lines else ""


def _outcome(one: Advice, holding: Holding | None, history: History) -> str:
    said = f"- {one.bottleneck} (v{one.base}): {one.change}"
    if holding is None:
        return f"{said} Nothing came of it."
    followed = history.attempt(holding.version)
    speed = followed.evaluation.speedup if followed is not None else None
    end = f"v{holding.version}, {speed:.2f}x PyTorch" if speed else f"v{holding.version}, which failed"
    held = {True: "as predicted", False: "not as predicted", None: "not comparable"}[holding.held]
    moved = ", ".join(f"{each.metric} {each.before:.4g} -> {each.after:.4g}" for each in holding.happened)
    return f"{said} Result: {end}, {held}{': ' + moved if moved else ''}."
