"""What a runner says is believed in nothing but where to look; and what its words, its silence or its end come to."""

from __future__ import annotations

import json
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from apps.kernels.jail import Jailed
from apps.kernels.jail.limits import says_out_of_memory
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.plain import Plain

COMPILES = "torch compiles"  # the one rule that is seen broken inside, `inside.closed`
ABORTED = 6  # the exit code that `inside.aborts` makes of SIGABRT
STAGES = {"import": "while being imported", "construct": "in its constructor", "prepare": "in prepare()"}


@contextmanager
def believed(what: str) -> Iterator[None]:
    """Whatever can't be read of what a runner says was not said by the judge's own code in it."""
    try:
        yield
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        struct.error,
    ) as problem:
        raise forged(f"{what}: {type(problem).__name__}: {problem}") from None


def forged(detail: str) -> CandidateFailed:
    """Something in the runner wrote where only the judge's own code writes."""
    return CandidateFailed("rejected", f"something wrote on the judge's channel: {detail[:200]}", "forged report")


def failed_build(said: dict[str, Plain]) -> CandidateFailed:
    """An exception that was raised before it was warm, as the runner tells of it."""
    stage, detail = str(said.get("stage")), str(said["failed"])
    where = STAGES.get(stage, "in its first calls")
    if said.get("rule") == COMPILES:
        return CandidateFailed("rejected", f"{where}: {detail}", COMPILES)
    if says_out_of_memory(detail):
        return CandidateFailed("out_of_memory", f"{where}: {detail}")
    verdict = "build_failed" if stage == "import" else "crashed"
    return CandidateFailed(verdict, f"it raised {where}:\n{detail}")


def failed_call(text: str) -> CandidateFailed:
    """Where an answer's bytes were expected an object came: the runner's account of an exception, or a forgery."""
    try:
        said = json.loads(text)
        detail = str(said["failed"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return forged(text)
    if said.get("rule") == COMPILES:
        return CandidateFailed("rejected", f"in a call: {detail}", COMPILES)
    verdict = "out_of_memory" if says_out_of_memory(detail) else "crashed"
    return CandidateFailed(verdict, f"a call raised:\n{detail}")


def death(jailed: Jailed, where: str) -> CandidateFailed:
    """It ended `where` it should have gone on; waits for its end."""
    ended = jailed.wait(5.0)
    tail = jailed.output.strip()[-1500:]
    verdict = "out_of_memory" if ended.out_of_memory else "timed_out" if ended.timed_out else "crashed"
    hint = ""
    if ended.signal == signal.SIGSEGV:
        hint = "; it touched memory that isn't its own (past the end of an input, or writing to one)"
    words = "aborted (SIGABRT)" if ended.code == ABORTED else ended.words
    return CandidateFailed(verdict, f"{where} it {words}{hint}" + (f":\n{tail}" if tail else ""))
