"""A judge's runner as the profiler wants it: thawed for the while, with the libraries it built."""

from __future__ import annotations

import io
import os
import struct
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from apps.kernels.jail import ChannelBroken, ChannelTimeout
from apps.kernels.jail.channel import BYTES, HEADER
from apps.kernels.jail.mappings import Mapped
from apps.kernels.judge.artefacts import Artefacts, Compilation
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.runner import Runner
from apps.kernels.profile.attribution import read_mappings
from apps.kernels.profile.runner import BuiltLibrary, RunnerGone
from apps.kernels.temporary import temporary

# Outputs of one window are alive together: more than a cache's worth of them would make every call's memory cold.
_WINDOW_BYTES = 1 << 20
_MOST_CALLS_A_WINDOW = 64
_MOST_LIBRARIES = 8
_LARGEST_LIBRARY = 64 << 20
_SOURCES = (".cpp", ".cc", ".cxx", ".c")
_TIMEOUT = 60.0


class JudgedRunner:
    """`ProfiledRunner` over a candidate's runner whose build phase is closed. Use `profiled` to make one."""

    def __init__(self, runner: Runner, libraries: tuple[BuiltLibrary, ...]) -> None:
        self._runner = runner
        self._libraries = libraries
        output = max(1, runner.problem.output_bytes)
        self._window = max(1, min(_MOST_CALLS_A_WINDOW, _WINDOW_BYTES // output))

    @property
    def pid(self) -> int:
        return self._runner.jailed.pid

    @property
    def libraries(self) -> tuple[BuiltLibrary, ...]:
        return self._libraries

    def call(self, n: int) -> float:
        seconds = 0.0
        while n > 0:
            calls = min(n, self._window)
            seconds += self._call_window(calls)
            n -= calls
        return seconds

    def set_threads(self, k: int) -> None:
        try:
            self._runner.jailed.send({"do": "threads", "threads": k})
            self._runner.jailed.receive(_TIMEOUT)
        except (ChannelBroken, ChannelTimeout, OSError) as problem:
            raise RunnerGone(f"the candidate's process does not answer: {problem}") from None

    def _call_window(self, calls: int) -> float:
        """One message, calls in a row on the first placement's inputs, no output kept."""
        body = struct.pack(f"<{calls + 1}H", 0, *([0] * calls))
        channel = self._runner.jailed.channel
        start = time.perf_counter()
        try:
            channel.socket.sendall(HEADER.pack(len(body), BYTES) + body)
            channel.receive_bytes(_TIMEOUT)
        except (ChannelBroken, ChannelTimeout, OSError) as problem:
            raise RunnerGone(f"the candidate's process ended while it was profiled: {problem}") from None
        return time.perf_counter() - start


@contextmanager
def profiled(runner: Runner, built: Artefacts) -> Iterator[JudgedRunner]:
    """The runner thawed, its libraries laid out from `built` (what its build phase left), frozen again at the end."""
    with temporary("profile") as directory:
        libraries = built_libraries(built, read_mappings(runner.jailed.pid), directory)
        runner.thaw()
        try:
            yield JudgedRunner(runner, libraries)
        finally:
            try:
                runner.freeze()
            except CandidateFailed:
                runner.jailed.kill()


def built_libraries(built: Artefacts, mappings: Sequence[Mapped], directory: Path) -> tuple[BuiltLibrary, ...]:
    """Shared objects that the candidate left in its directory and has in its memory, written to `directory`.

    They are taken from the copy that was made before it knew any input, never from where it could change them. A
    compiler's run belongs to the library it names as output; where the library was linked from objects, to the run that
    compiled a source beside it.
    """
    found: list[BuiltLibrary] = []
    if not built.tar:
        return ()
    with tarfile.open(fileobj=io.BytesIO(built.tar)) as tar:
        members = {member.name: member for member in tar.getmembers() if member.isreg()}
        for mapping in mappings:
            name = next(
                (m for m in members if mapping.path.endswith("/" + m) and members[m].size <= _LARGEST_LIBRARY), None
            )
            if name is None or any(library.mapped_inode == mapping.inode for library in found):
                continue
            path = directory / f"{len(found)}-{PurePosixPath(name).name}"
            path.write_bytes(_content(tar, members[name]))
            run, source = _compilation(built.compilations, "/" + name, members)
            command = (run.compiler, *run.arguments) if run and source else ()
            text = _content(tar, members[source]).decode(errors="replace") if source else ""
            found.append(BuiltLibrary(path, command, text, mapping.inode))
    return tuple(found[:_MOST_LIBRARIES])


def _compilation(
    runs: Sequence[Compilation], library: str, members: dict[str, tarfile.TarInfo]
) -> tuple[Compilation | None, str]:
    """The run that made the library and the source among the members, or None and an empty name.

    `library` is its path within the candidate's directory, with a leading slash: seen from outside, the directory that the
    candidate names may have another name.
    """
    for by_name in (True, False):
        for run in runs:
            made = os.path.join(run.directory, run.output or "")  # noqa: PTH118
            beside = os.path.dirname(made).endswith(os.path.dirname(library))  # noqa: PTH120
            if not (os.path.basename(made) == os.path.basename(library) if by_name else beside):  # noqa: PTH119
                continue
            for argument in run.arguments:
                if not argument.endswith(_SOURCES):
                    continue
                full = os.path.normpath(os.path.join(run.directory, argument))  # noqa: PTH118
                source = next((m for m in members if full.endswith("/" + m)), None)
                if source:
                    return run, source
    return None, ""


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    return file.read() if file else b""
