"""Where an installation keeps what lives only while it runs: sockets and the lock. Standard library alone."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

# A unix socket's path has room for about 107 characters; the longest name here is "supervisor.sock".
LONGEST = 90


def run_directory(var: Path) -> Path:
    """`var/run`, or where that path is too long for sockets a private directory of this user under the system's own."""
    run = var.resolve() / "run"
    if len(str(run)) <= LONGEST - len("/supervisor.sock"):
        return run
    digest = hashlib.sha256(str(run).encode()).hexdigest()[:10]
    return Path(tempfile.gettempdir()) / f"pragma-{os.getuid()}-{digest}"


def make_run_directory(var: Path) -> Path:
    """The same, there and private. Raises PermissionError where somebody else has put something in its place."""
    run = run_directory(var)
    run.mkdir(parents=True, exist_ok=True)
    facts = run.lstat()
    if facts.st_uid != os.getuid() or run.is_symlink():
        raise PermissionError(f"{run} belongs to somebody else; remove it, or set PRAGMA_VAR to a shorter path")
    run.chmod(0o700)
    return run
