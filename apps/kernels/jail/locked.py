"""python locked.py READABLE ... -- PROGRAM ARGUMENT ...: run one program of the system's on a hostile file.

The program reads what the system and READABLE hold and nothing else. It writes no file, starts no other program, reaches no
network and no other process, and holds no capability. For tools that parse what generated code has written; a compiler,
which runs what its flags say, belongs into a jail.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[3]))

from apps.kernels.jail import landlock, namespaces, seccomp, syscalls


def main(words: list[str]) -> None:
    """Lock this process in and become the program."""
    at = words.index("--")
    readable, command = words[:at], words[at + 1 :]
    program = str(Path(command[0]).resolve())
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if os.geteuid() == 0:
        syscalls.drop_capabilities()
    own = str(Path(program).parents[1])  # an LLVM of its own brings its libraries
    landlock.restrict((*namespaces.SYSTEM, *namespaces.SETTINGS, "/proc/self", own, *readable), (), namespaces.DEVICES)
    if syscalls.SUPPORTED:
        seccomp.close_dangerous(os.getpid())
        seccomp.close_building(exec_too=False)
    os.execv(program, command)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
