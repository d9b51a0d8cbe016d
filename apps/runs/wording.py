"""How the log of a run reads: one line for people from a typed fact."""

from __future__ import annotations

from apps.agents import verifier
from apps.agents.facts import CandidateDropped, RunEnded
from apps.agents.words import Advice, Holding
from apps.kernels.evaluation import Evaluation, Outcome, Verdict

_LONGEST = 300


def line(text: str, longest: int = _LONGEST) -> str:
    """The first line of a text, cut where it is too long for a log."""
    first = next((part.strip() for part in text.splitlines() if part.strip()), "")
    return first if len(first) <= longest else first[: longest - 1].rstrip() + "…"


def times(speedup: float) -> str:
    """A speed-up as people write it: 3.11×."""
    return f"{speedup:.3g}×" if speedup >= 100 else f"{speedup:.2f}×"


def speedup(evaluation: Evaluation) -> str:
    """The speed-up with its 95% interval, or why there is none."""
    ratio = evaluation.timing.speedup
    if evaluation.verdict is not Verdict.CORRECT or ratio is None:
        return ""
    low, high = ratio.ci95
    return f"{times(ratio.median)} [{low:.2f}, {high:.2f}]"


def verdict(evaluation: Evaluation) -> str:
    """The verdict in words, with the reason where it is not `correct`."""
    word = evaluation.verdict.value.replace("_", " ")
    if evaluation.verdict is Verdict.CORRECT:
        return word
    why = verifier.reason(evaluation)
    return f"{word}: {line(why)}" if why else word


def version_kept(number: int, evaluation: Evaluation, *, fastest: bool) -> str:
    """v3 correct, 3.11× [2.98, 3.24], best so far."""
    said = [f"v{number} {verdict(evaluation)}", speedup(evaluation)]
    return ", ".join(part for part in [*said, "best so far" if fastest else ""] if part)


_PURPOSES = {
    "real_headers": "built with Torch's own headers",
    "final": "judged in full",
    "again": "measured again",
}


def version_judged(number: int, purpose: str, evaluation: Evaluation, rival_of: int | None) -> str:
    """v3 judged in full: faster, 3.11× [2.98, 3.24]."""
    if purpose == "rival" and rival_of is not None:
        ratio = evaluation.timing.speedup
        against = f"v{number} timed against v{rival_of}: "
        return against + (f"{speedup(evaluation)} of its speed" if ratio is not None else verdict(evaluation))
    outcome = evaluation.timing.outcome
    words = {Outcome.FASTER: "faster", Outcome.SLOWER: "slower", Outcome.WITHIN_NOISE: "within noise of the reference"}
    said = [words[outcome] if outcome is not None else verdict(evaluation), speedup(evaluation)]
    return f"v{number} {_PURPOSES.get(purpose, purpose)}: " + ", ".join(part for part in said if part)


def reference_timed(evaluation: Evaluation) -> str:
    """Reference 5.20 ms [5.18, 5.23]; torch.compile 1.31×."""
    reference, compiled = evaluation.timing.reference, evaluation.timing.compiled_reference
    if reference is None:
        return "The reference could not be timed"
    text = f"Reference {reference.median_ms:.3g} ms [{reference.ci95_ms[0]:.3g}, {reference.ci95_ms[1]:.3g}]"
    if compiled is not None and compiled.median_ms > 0:
        text += f"; torch.compile {times(reference.median_ms / compiled.median_ms)}"
    return text


def advice_given(advice: Advice) -> str:
    """Advice 2 on v3, memory bandwidth: fuse the two passes."""
    return f"Advice {advice.number} on v{advice.base}, {advice.bottleneck.replace('_', ' ')}: {line(advice.change)}"


def advice_held(holding: Holding) -> str:
    """Advice 2 held in v4: time 0.62 of before (predicted 0.50 to 0.70)."""
    held = {True: "held", False: "did not hold", None: "can't be told"}[holding.held]
    text = f"Advice {holding.advice} {held} in v{holding.version}"
    told = [
        f"{one.metric.replace('_', ' ')} {one.after / one.before:.2f} of before (predicted {one.low:.2f} to {one.high:.2f})"
        for one in holding.happened
        if one.before
    ]
    return f"{text}: {'; '.join(told)}" if told else text


def candidate_dropped(fact: CandidateDropped) -> str:
    """Candidate dropped: the same text as v2."""
    return f"No candidate: {line(fact.unwritten.reason)}"


def run_ended(ended: RunEnded) -> str:
    """The run's last word."""
    return f"{ended.ending.value.capitalize()}: {line(ended.reason, 600)}"
