"""States and verdicts as chips: a word, a sign and a tone, so that colour is never the only difference."""

from __future__ import annotations

from dataclasses import dataclass

from apps.kernels.evaluation import Outcome, Verdict
from apps.runs.models import Run, RunState


@dataclass(frozen=True)
class Chip:
    """`tone` is good, bad, warn, run or empty; `beats` while something is going on; `why` is shown on hover."""

    word: str
    sign: str = ""
    tone: str = ""
    beats: bool = False
    why: str = ""


_RUN_CHIPS = {
    RunState.QUEUED: Chip("queued", "○", "", False, "Waits for a worker"),
    RunState.RUNNING: Chip("running", "●", "run", True),
    RunState.PAUSED: Chip("paused", "‖", "warn", False, "Goes on when somebody resumes it"),
    RunState.STOPPING: Chip("stopping", "◐", "warn", True, "Ends after the step in flight and keeps the best"),
    RunState.FINISHED: Chip("finished", "✓", "good"),
    RunState.STOPPED: Chip("stopped", "■", ""),
    RunState.FAILED: Chip("failed", "✕", "bad"),
}
_LOST = Chip("lost", "?", "bad", False, "Its worker has gone silent; another takes it up within a minute")
_VERDICTS = {
    Verdict.CORRECT: Chip("correct", "✓", "good"),
    Verdict.INCORRECT: Chip("incorrect", "✕", "bad"),
    Verdict.BUILD_FAILED: Chip("build failed", "✕", "bad"),
    Verdict.CRASHED: Chip("crashed", "✕", "bad"),
    Verdict.TIMED_OUT: Chip("timed out", "✕", "bad"),
    Verdict.OUT_OF_MEMORY: Chip("out of memory", "✕", "bad"),
    Verdict.REJECTED: Chip("rejected", "⊘", "bad", False, "It breaks a rule of judging; the rule is named with it"),
}
_OUTCOMES = {
    Outcome.FASTER: Chip("faster", "▲", "good", False, "Its whole interval lies above the margin, judged in full"),
    Outcome.SLOWER: Chip("slower", "▼", "bad", False, "Its whole interval lies below the margin, judged in full"),
    Outcome.WITHIN_NOISE: Chip("within noise", "≈", "", False, "Not to be told from the reference, judged in full"),
}


def run_chip(run: Run) -> Chip:
    """The state of a run, *lost* where its worker has gone silent."""
    return _LOST if run.is_lost else _RUN_CHIPS[RunState(run.state)]


def verdict_chip(verdict: str | None) -> Chip:
    """The judge's word on a candidate; "not judged" where there is none yet."""
    return _VERDICTS[Verdict(verdict)] if verdict else Chip("not judged", "○")


def outcome_chip(outcome: str | None) -> Chip | None:
    """The full tier's word, or None where nothing was judged in full."""
    return _OUTCOMES[Outcome(outcome)] if outcome else None
