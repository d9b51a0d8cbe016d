"""How much a problem's own checks can tell, asked of the oracle once for each problem on a host and kept by content."""

from __future__ import annotations

import time

from apps.kernels.judge.errors import ProblemRefused
from apps.kernels.judge.session import Session
from apps.kernels.plain import BadPlain
from apps.kernels.strength import Strength, keep_strength, kept_strength

SECONDS = 10.0  # of trying wrong answers where nobody has looked at the problem before


def strength_of(session: Session) -> Strength:
    """What was found out before, or now. Raises `ProblemRefused` where nothing can be judged by its checks."""
    found = kept_strength(session.problem_source, session.zygote.torch)
    if found is None:
        found = _examined(session)
    if found.refusal:
        raise ProblemRefused(found.refusal)
    return found


def follow(session: Session, found: Strength) -> None:
    """Have the judgement draw its inputs as it takes to tell right from wrong here."""
    session.oracle.jumps, session.alike, session.timed = found.jumps, found.alike, found.timed


def _examined(session: Session) -> Strength:
    started = time.monotonic()
    session.tell("check", "testing the problem itself, once")
    try:
        found = session.oracle.examine(SECONDS)
    except (ProblemRefused, BadPlain):
        if session.oracle.jailed.ended is not None:
            raise
        return Strength(complete=False)  # what could not be tried says nothing of a candidate
    finally:
        session.spend("testing the problem", started)
    keep_strength(found, session.problem_source, session.zygote.torch)
    return found
