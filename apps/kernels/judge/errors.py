"""Why something could not be judged; neither says anything about the candidate."""

from __future__ import annotations


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
        self.detail = detail
        self.rule = rule
