"""The same attacks, outside any jail: what they try does work there, so that a refusal inside says something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from apps.kernels.attacks import ATTEMPTS
from apps.kernels.attacks.trying import _targets
from apps.kernels.jail import Zygote

# Those that harm nothing where nobody stops them.
HARMLESS = {
    "list the judge's home", "read a file of the installation's data", "read PRAGMA's own code", "read it through a symlink",
    "read it through /proc/self/cwd/..", "hard link to it", "its environment", "its open files",
    "connect to a port of this machine", "a unix socket", "an abstract socket", "connect a pair's end elsewhere",
    "signal the judge", "signal its keeper", "queue a signal", "signal by descriptor", "fork", "exec from /dev/shm",
    "exec from anonymous memory", "run a compiler", "keep something in a file", "the x32 calls", "-include",
    "#include of a file", ".incbin", "whether a file is there", "a response file", "-wrapper", "write outside by -o",
    "write outside by -MF", "an assembler's include", "code that was not there before",
}  # fmt: skip
NEED_RIGHTS = {"its memory by /proc", "its memory by process_vm_readv"} if os.geteuid() == 0 else set()
NOT_EVERYWHERE = {"the x32 calls"}


class Channel:
    """Stands for a jailed process's channel."""

    files: tuple[int, ...] = ()

    def fileno(self) -> int:
        return 0

    def send(self, message: dict[str, Any]) -> None:
        if "became" in message:
            print(json.dumps(message["became"]))

    def receive(self) -> dict[str, Any]:
        return {}


def test_outside_a_jail_they_succeed(tmp_path: Path) -> None:
    names = (HARMLESS | NEED_RIGHTS) - NOT_EVERYWHERE
    attacks = [attack for attack in ATTEMPTS if attack.name in names]
    assert {attack.name for attack in attacks} == names
    with Zygote("light", bare=True) as zygote, _targets(zygote) as targets:
        payload = {"targets": {**targets, "judge": os.getpid()}, "close": False, "attempts": [a.code for a in attacks]}
        code = (
            "import sys, json; sys.path.insert(0, sys.argv[1]); from tests.jail.test_attacks_are_real import Channel\n"
            "from apps.kernels.attacks.tools_inside import TOOLS\n"
            "exec(TOOLS, {'channel': Channel(), 'payload': json.load(sys.stdin)})"
        )
        root = str(Path(__file__).parents[2])
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        done = subprocess.run(
            [sys.executable, "-c", code, root], input=json.dumps(payload), cwd=tmp_path, env=environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    if not done.stdout:
        pytest.fail(f"exit code {done.returncode}: {done.stderr[-2000:]}")
    became = {attack.name: how for attack, how in zip(attacks, json.loads(done.stdout.splitlines()[-1]), strict=True)}
    assert {name: said for name, (how, said) in became.items() if how != "did"} == {}
