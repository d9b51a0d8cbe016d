"""torch.compile of the reference as a runner beside the others; its build may be cached, its times never are."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import replace
from pathlib import Path

from apps.kernels.judge.artefacts import Artefacts
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.memory import Arena
from apps.kernels.judge.runner import Options, Runner
from apps.kernels.judge.session import Session
from apps.kernels.temporary import write_whole

MODULES = ("torch._dynamo", "torch._inductor.compile_fx", "torch._inductor.codecache", "torch._inductor.codegen.cpp")
NAME = "compiled"


def start(session: Session, runners: dict[str, Runner], timed: Options, arena: Arena) -> str | None:
    """Start it, as `timed` says of all runners of the group, on inputs in `arena`.

    Returns a note where torch.compile can't do this problem.
    """
    session.tell("time", "torch.compile of the reference")
    session.zygote.preload(MODULES)
    if not session.compiled_artefacts.tar:
        session.compiled_artefacts = _kept(session)
    fresh = not session.compiled_artefacts.tar
    options = replace(timed, role=NAME, source=session.problem_source)
    try:
        runner = session.runner(options, first=fresh, arena=arena)
    except CandidateFailed as failure:
        return failed(failure)
    runners[NAME] = runner
    if fresh:
        session.compiled_artefacts = runner.built
        _keep(session, runner.built)
    return None


def failed(failure: CandidateFailed) -> str:
    """What is said where it can't be timed."""
    return f"torch.compile failed on this problem: {failure.detail.splitlines()[-1][:200]}"


def cache_directory() -> Path:
    """Where builds are kept: `PRAGMA_CACHE`, or the user's cache directory."""
    base = os.environ.get("PRAGMA_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "pragma"


def _path(session: Session) -> Path:
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        flags = next((line for line in file if line.startswith("flags")), "")
    key = hashlib.sha256(f"{session.problem_source}\0{session.zygote.torch}\0{flags}\0{session.threads}".encode())
    return cache_directory() / "compiled" / f"{key.hexdigest()[:32]}.tar"


def _kept(session: Session) -> Artefacts:
    with contextlib.suppress(OSError):
        return Artefacts(_path(session).read_bytes())
    return Artefacts()


def _keep(session: Session, built: Artefacts) -> None:
    path = _path(session)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(path, built.tar)
