"""Running PRAGMA's judge as other kinds of users than the tests' own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

KINDS = ("root in a container", "ordinary user", "ordinary user without namespaces")


def run_as(kind: str, arguments: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments as that kind of user; skips the test where that can't be arranged."""
    if os.geteuid() != 0:
        if kind != "ordinary user":
            pytest.skip(f"only root can play {kind!r}; tried as the ordinary user that runs these tests")
        return _run([sys.executable, *arguments], environment)
    if shutil.which("unshare") is None:
        pytest.skip("unshare (util-linux) is needed to play another user and is not installed")
    home = tempfile.mkdtemp(prefix="pragma-home-")
    become = str(Path(__file__).with_name("become.py"))
    own = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
    try:
        return _run([*own, sys.executable, become, kind, home, sys.executable, *arguments], environment)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        command, cwd=root, env={**os.environ, **environment}, capture_output=True, text=True, timeout=200, check=False
    )
