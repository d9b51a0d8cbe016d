"""lock.py: requirements/run.txt and dev.txt anew from pyproject.toml, by hashes and without index addresses.

    make lock

torch and what it alone pulls in stand in requirements/torch.txt, pinned by hand: their hashes differ by index.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

BASE = Path(__file__).resolve().parent.parent
FLAGS = (
    "--quiet",
    "--generate-hashes",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--strip-extras",
    "--allow-unsafe",
)


def main() -> int:
    """The exit code of the first step that failed, or 0."""
    project = tomllib.loads((BASE / "pyproject.toml").read_text())["project"]
    wanted = BASE / "requirements" / "dev.in"
    wanted.write_text("\n".join(["-c run.txt", *project["optional-dependencies"]["dev"], ""]))
    compiler = (sys.executable, "-m", "piptools", "compile", *FLAGS)
    try:
        for command in (
            (*compiler, "--extra", "embedded", "-o", "requirements/run.txt", "pyproject.toml"),
            (*compiler, "-o", "requirements/dev.txt", "requirements/dev.in"),
        ):
            if status := subprocess.call(command, cwd=BASE):
                return status
    finally:
        wanted.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
