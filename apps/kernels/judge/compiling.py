"""A candidate's source compiled once more, for the compiler's remarks, where it was compiled before: inside the jail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from apps.kernels.jail import ChannelBroken, ChannelTimeout, JailFailed, Limits, Zygote, ZygoteFailed
from apps.kernels.profile.remarks import Compile, NoRemarks

SECONDS = 25
MEMORY = 6 << 30  # of address space: what torch maps in every jailed process, and the compiler's own


def jailed_compiler(zygote: Zygote) -> Compile:
    """A `Compile` for `profile_candidate`: runs a command beside the source that lies in a directory here."""

    def compile_text(command: Sequence[str], directory: Path) -> str:
        name = command[-1]
        payload = {
            "command": list(command),
            "name": name,
            "source": (directory / name).read_text(encoding="utf-8", errors="replace"),
            "seconds": SECONDS,
        }
        limits = Limits(memory_bytes=MEMORY, cpu_seconds=2 * SECONDS, wall_seconds=SECONDS + 10)
        try:
            with zygote.spawn("apps.kernels.inside.compiling:main", payload, limits=limits) as jailed:
                said = jailed.receive(SECONDS + 5)
        except (ChannelBroken, ChannelTimeout, JailFailed, ZygoteFailed) as problem:
            raise NoRemarks(f"the kernel could not be compiled once more: {problem}") from None
        if "said" not in said:
            # what the compiler says of an error may quote other files: it is not passed on
            raise NoRemarks(f"the kernel could not be compiled once more: {str(said.get('failed'))[:200]}")
        return str(said["said"])

    return compile_text
