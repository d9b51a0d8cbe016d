"""Runs a compiler or binary tool on what generated code may have written: limited, alone, and ended with its children."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.jail import locked

_MOST_MEMORY, _MOST_FILE = 4 << 30, 64 << 20
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}


class ToolFailed(RuntimeError):
    """The tool could not be run, did not finish in time, or ended with an error."""


def _locked(command: Sequence[str], reading: Sequence[Path]) -> list[str]:
    return [sys.executable, "-IS", str(locked.__file__), *(str(path.resolve()) for path in reading), "--", *command]


@dataclass(frozen=True)
class Said:
    """What a tool wrote."""

    output: str
    errors: str


def run_tool(
    command: Sequence[str],
    *,
    seconds: int,
    text: str = "",
    directory: Path | None = None,
    reading: Sequence[Path] | None = None,
) -> Said:
    """Runs it in a session of its own with an empty environment. Raises `ToolFailed`.

    With `reading` it is locked in: besides the system's files it reads those alone, writes none, starts nothing.
    Limits are set from outside right after the start: code that runs between fork and exec may deadlock in a process
    with threads, which a judge is.
    """
    name = Path(command[0]).name
    environment = _ENVIRONMENT | ({"TMPDIR": str(directory)} if directory else {})
    try:
        words = list(command) if reading is None else _locked(command, reading)
        process = subprocess.Popen(
            words, cwd=directory, env=environment, start_new_session=True, text=True, errors="replace",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as problem:
        raise ToolFailed(f"{name} does not run: {problem.strerror}") from None
    limits = ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, _MOST_MEMORY), (resource.RLIMIT_FSIZE, _MOST_FILE))
    for what, most in limits:
        with contextlib.suppress(OSError):
            resource.prlimit(process.pid, what, (most, most))
    try:
        output, errors = process.communicate(text, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise ToolFailed(f"{name} did not finish in {seconds} s") from None
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode != 0:
        raise ToolFailed(f"{name} ended with {process.returncode}")
    return Said(output, errors)
