"""Why something could not be judged; neither says anything about the candidate."""

from __future__ import annotations

LONGEST_DETAIL = 12_000  # characters; a compiler's words are cut there too


class ProblemRefused(Exception):
    """The problem can't be judged honestly: the reason, and what would help."""


class ProblemTooLarge(ProblemRefused):
    """Its tensors need more memory than judging here may take."""


class HostCannotJudge(Exception):
    """This host can't judge now: the reason, and what would help."""


class CandidateFailed(Exception):
    """A candidate broke off: a verdict's name, and what happened."""

    def __init__(self, verdict: str, detail: str, rule: str = "") -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.detail = readable(detail)
        self.rule = rule


def readable(text: str) -> str:
    """A candidate's words as they may be stored and shown: no control characters, no halves of characters, not endless."""
    cut = text if len(text) <= LONGEST_DETAIL else f"{text[:LONGEST_DETAIL]}…"
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in cut)
