"""What a candidate has set for its whole process: precision only as the reference sets it, the rest is said.

Oracle, comparer and reference live in processes of their own, so it changes nothing that the judge goes by; whoever uses
the kernel would have it in theirs. What the process says of itself is a tripwire; its control register is read from outside.
"""

from __future__ import annotations

from apps.kernels.evaluation import Robustness
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.runner import Runner
from apps.kernels.judge.session import Session
from apps.kernels.plain import Plain
from apps.kernels.profile.control_word import control_word, in_words

USUAL = in_words(0)


def judge_process_state(session: Session, findings: Findings, runner: Runner) -> None:
    """Ask it and look. Raises `CandidateFailed` where something has changed that the reference does not change as well."""
    outside = _outside(runner)  # before it is thawed and could put things right
    changes = {**runner.process_changes(), **outside}
    threads = changes.pop("threads", None)
    if threads:
        words = f"it changes the threads of its whole process from {threads[0]} to {threads[-1]}; use num_threads(...)"
        findings.robustness.append(Robustness("threads of the process", False, words))
    _refuse(session, changes)


def judge_control_word(session: Session, runner: Runner) -> None:
    """Only look, at a process whose calls are timed. Raises `CandidateFailed` as above."""
    _refuse(session, _outside(runner))


def _outside(runner: Runner) -> dict[str, Plain]:
    now = control_word(runner.jailed.pid) or USUAL
    runner.freeze()  # whoever was looked at stops again a moment later
    return {name: [USUAL[name], value] for name, value in now.items() if value != USUAL[name]}


def _refuse(session: Session, changes: dict[str, Plain]) -> None:
    allowed = session.oracle.problem.process_state
    changes = {name: value for name, value in changes.items() if allowed.get(name) != value[-1]}
    if not changes or session.trusted:
        return
    found = "; ".join(f"{name}: {before}, then {after}" for name, (before, after) in changes.items())
    hint = " Link without -ffast-math: it flushes them in the whole process." if "subnormal numbers" in changes else ""
    detail = f"it changes what holds for its whole process ({found}).{hint}"
    raise CandidateFailed("rejected", detail, "process state")
