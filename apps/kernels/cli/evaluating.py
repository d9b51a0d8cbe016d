"""`evaluate PROBLEM.py CANDIDATE.py`: judge one candidate."""

from __future__ import annotations

from argparse import Namespace

from apps.kernels.cli.exit_codes import BadInput


def run(options: Namespace) -> int:
    raise BadInput("not yet")
