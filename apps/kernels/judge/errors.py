"""Why something could not be judged; neither says anything about the candidate."""

from __future__ import annotations

from apps.kernels.plain import Plain

LONGEST_DETAIL = 12_000  # characters; a compiler's words are cut there too


class ProblemRefused(Exception):
    """The problem can't be judged honestly: the reason, and what would help."""


class ProblemTooLarge(ProblemRefused):
    """Its tensors need more memory than judging here may take."""


class HostCannotJudge(Exception):
    """This host can't judge now: the reason, and what would help."""


class CandidateFailed(Exception):
    """A candidate broke off: a verdict's name, and what happened."""

    def __init__(self, verdict: str, detail: str, rule: str = "", where: str = "the candidate's process") -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.detail = readable(detail)
        self.rule, self.where = rule, where  # of what is rejected


def all_readable(value: Plain) -> Plain:
    """The same of every text in a value."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {readable(key): all_readable(item) for key, item in value.items()}
    return [all_readable(item) for item in value] if isinstance(value, list | tuple) else value


def readable(text: str) -> str:
    """A candidate's words as they may be stored and shown: no control characters, no halves of characters, not endless."""
    cut = text if len(text) <= LONGEST_DETAIL else f"{text[:LONGEST_DETAIL]}…"
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in cut)
