"""The Verifier's words: what a judgement said about building and checking, of an error the part that matters, and
whether that part explains itself or is worth a model's reading.

The judging itself is the host's (`apps.agents.ports.Evaluator`); here its findings become text that a Coder can repair
from and a person can read.
"""

from __future__ import annotations

import re

from apps.kernels.evaluation import Evaluation, Trial, Verdict

# A repair needs the first errors with their context; the rest of a compiler's output mostly follows from those.
LONGEST_ERROR = 40  # lines
_COMPILER = re.compile(r"\berror:|\bundefined (reference|symbol)\b")
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b")
# Errors that name what is missing, misspelt or misplaced. With its line shown there is nothing left to find out.
_PLAIN_COMPILER = re.compile(
    r"error:.*\b(not declared|undeclared|does not name a type|no member named|is not a member of|no such file|"
    r"redefinition|redeclaration|expected|missing terminating|stray|too (few|many) arguments)\b"
    r"|\bundefined (reference|symbol)\b",
    re.IGNORECASE,
)
_PLAIN_RAISED = re.compile(
    r"^(SyntaxError|IndentationError|TabError|NameError|UnboundLocalError|ImportError|ModuleNotFoundError|AttributeError)\b"
)
_IN_CANDIDATE = re.compile(r"\bcandidate\.py\b.*\d|\bline \d+")
# What the judge says of outputs and buffers of another make; each says what is there and what the reference has.
OTHER_MAKE = ("its outputs are ", "it returns ", "its output has ", "its output is ", "it has no buffer ")
_NOISE = re.compile(r"^\s*(In file included from|from .*:\d+[,:]|compilation terminated)|\bwarning:|\bnote: candidate")
_TEMPORARY = re.compile(r"(/[\w.+-]+)+/([\w.+-]+\.(?:cpp|cc|cu|h|hpp|py|so|o))\b")

_HEADLINES = {
    Verdict.CORRECT: "Builds and is correct",
    Verdict.INCORRECT: "Computes something else than the reference",
    Verdict.BUILD_FAILED: "Does not build",
    Verdict.CRASHED: "Crashes",
    Verdict.TIMED_OUT: "Takes too long",
    Verdict.OUT_OF_MEMORY: "Takes more memory than it may",
    Verdict.REJECTED: "Is rejected: it does not do the work it claims to do",
}


def summary(evaluation: Evaluation) -> str:
    """One line: the verdict with its reason or, for a correct candidate, how well it held."""
    headline = _HEADLINES[evaluation.verdict]
    if evaluation.verdict is Verdict.CORRECT:
        checks = evaluation.correctness
        error = "" if checks.max_error is None else f", worst error {_error(checks.max_error, checks.tolerance)}"
        return f"{headline}: {checks.passed} of {checks.trials} checks passed{error}."
    why = reason(evaluation)
    return sentence(f"{headline}: {why}" if why else headline)


def sentence(text: str) -> str:
    """With a full stop at its end, unless it ends in a mark of its own."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def report(evaluation: Evaluation) -> str:
    """The whole of it, for people and for repairs: verdict, rules broken, failed checks, the error that matters."""
    parts = [summary(evaluation)]
    parts += [f"Rule {rejection.rule} at {rejection.where}: {rejection.detail}" for rejection in evaluation.rejections]
    failed = [trial for trial in evaluation.correctness.details if not trial.passed]
    parts += [_trial(trial) for trial in failed[:5]]
    if len(failed) > 5:
        parts.append(f"... and {len(failed) - 5} more checks failed.")
    if evaluation.verdict is not Verdict.CORRECT:
        parts.append(_error_of(evaluation))
    parts += [f"Specialised: {row.name}. {row.detail}" for row in evaluation.robustness if row.specialised]
    if evaluation.library_calls:
        parts.append("Library calls: " + ", ".join(evaluation.library_calls))
    if evaluation.build.seconds is not None:
        parts.append(f"Build {evaluation.build.seconds:.2f} s, judgement {evaluation.seconds:.2f} s.")
    return "\n".join(part for part in parts if part)


def explained(evaluation: Evaluation) -> bool:
    """Whether the judge's own words already say what is wrong and where, so that nobody need read more out of them.

    So it is where every rule broken names its line, every error of the compiler names what is missing or misplaced, an
    interpreter's error does so at a line of the candidate, or outputs are of another shape or type than the reference's.
    Wrong numbers, crashes, and a compiler's types and templates leave the cause open.
    """
    if evaluation.rejections:
        return all(rejection.where.startswith("line ") for rejection in evaluation.rejections)
    if evaluation.verdict is Verdict.INCORRECT:
        return evaluation.detail.startswith(OTHER_MAKE)
    lines = _error_of(evaluation).splitlines()
    if faults := [line for line in lines if _COMPILER.search(line)]:
        return all(_PLAIN_COMPILER.search(line) for line in faults)
    return any(map(_PLAIN_RAISED.search, lines)) and any(map(_IN_CANDIDATE.search, lines))


def _error_of(evaluation: Evaluation) -> str:
    return error_that_matters(evaluation.build.log if _is_build(evaluation) else evaluation.detail)


def error_that_matters(log: str, lines: int = LONGEST_ERROR) -> str:
    """Of a compiler's or an interpreter's output the errors with the lines that show them, at most `lines` lines.

    Directories are left out (they are the jail's and mean nothing outside). Where no compiler's error is found the end of
    the output is given: that is where an interpreter and most tools say what went wrong.
    """
    kept = [_TEMPORARY.sub(r"\2", line.rstrip()) for line in log.splitlines() if line.strip()]
    kept = [line for line in kept if not _NOISE.search(line)]
    faults = [i for i, line in enumerate(kept) if _COMPILER.search(line)]
    if not faults:
        return "\n".join(kept[-lines:])
    shown: list[int] = []
    for fault in faults:  # a compiler shows the line and a caret below the error
        shown += [
            i for i in range(fault, min(fault + 3, len(kept))) if i not in shown and (i == fault or i not in faults)
        ]
    text = [kept[i] for i in sorted(shown)[:lines]]
    if len(shown) > lines:
        text.append(f"... {len(faults)} errors in all.")
    return "\n".join(text)


def _is_build(evaluation: Evaluation) -> bool:
    return evaluation.verdict is Verdict.BUILD_FAILED and bool(evaluation.build.log)


def reason(evaluation: Evaluation) -> str:
    """Why it is not correct, in the line that says most: the rule broken, the compiler's first error, what was raised."""
    if evaluation.rejections:
        first = evaluation.rejections[0]
        return f"{first.detail} ({first.rule}, {first.where})"
    if _is_build(evaluation):
        return _headline(error_that_matters(evaluation.build.log).splitlines())
    if evaluation.detail:
        return _headline(evaluation.detail.strip().splitlines())
    failed = next((trial for trial in evaluation.correctness.details if not trial.passed), None)
    return _trial(failed) if failed else ""


def _headline(lines: list[str]) -> str:
    """Of an error the line that says most: the compiler's first, else what was raised, else the last one."""
    for kind in (_COMPILER, _RAISED):
        found = next((line for line in lines if kind.search(line)), None)
        if found is not None:
            return found.strip()
    return lines[-1].strip() if lines else ""


def _trial(trial: Trial) -> str:
    shape = "x".join(map(str, trial.shape)) or "scalar"
    error = "" if trial.error is None else f": error {_error(trial.error, trial.tolerance)}"
    return f"Check {trial.name} ({shape} {trial.dtype}){error}{'. ' if trial.detail else ''}{trial.detail}"


def _error(error: float, tolerance: float | None) -> str:
    return f"{error:.2g}" + ("" if tolerance is None else f" where {tolerance:.2g} is allowed")
