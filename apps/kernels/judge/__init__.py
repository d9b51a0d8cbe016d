"""The judge: trusted, owns randomness, schedule, clock, comparison and verdict; runs no foreign code, imports no torch."""

from __future__ import annotations

from apps.kernels.judge.errors import HostCannotJudge, ProblemRefused
from apps.kernels.judge.evaluate import compare_with_itself, evaluate

__all__ = ["HostCannotJudge", "ProblemRefused", "compare_with_itself", "evaluate"]
