"""start.py: from a fresh clone to a running PRAGMA, and to everything that tests need. Standard library alone.

    python3 tools/start.py            set up what is missing, start everything, launch a first run      (make run)
    python3 tools/start.py --setup    set up what running needs, start nothing                          (make setup)
    python3 tools/start.py --dev      set up what tests and linters need too, start nothing             (make test)

What was done is stamped with the digest of the lock file that said so, so that the next start takes seconds.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - said in words before anything newer is read
    sys.exit(
        f"PRAGMA needs Python 3.11 or later; this is {sys.version.split()[0]}. Install it (Debian 12, Ubuntu 24.04, "
        "Fedora: python3; Homebrew: python@3.12) and run: make run PYTHON=python3.12"
    )

import argparse
import importlib.util
import os
from pathlib import Path
from types import ModuleType

BASE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BASE / "tools"))

import machine  # noqa: E402
import packages  # noqa: E402


def main() -> int:
    """0 when done or already running, 1 where something is missing (and what, on stderr)."""
    parser = argparse.ArgumentParser("start.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--setup", action="store_true", help="set up what running needs, start nothing")
    parser.add_argument("--dev", action="store_true", help="set up what tests and linters need too, start nothing")
    given = parser.parse_args()
    if not (given.setup or given.dev) and (address := _running()) is not None:
        print(f"PRAGMA already runs at {address or 'an address it will say in a moment'}")
        return 0
    missing = machine.missing()
    for lack in missing:
        print(lack.words, file=sys.stderr)
    if any(lack.fatal for lack in missing):
        return 1
    try:
        packages.set_up(BASE, dev=given.dev)
    except packages.SetupFailed as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    if given.setup or given.dev:
        return 0
    return _become_supervisor()


def _become_supervisor() -> int:
    python = str(packages.python_of(BASE))
    os.chdir(BASE)
    os.execv(python, [python, "-m", "pragma_web.supervisor", "--prepare"])  # noqa: S606


def _running() -> str | None:
    """Where PRAGMA runs already, as its lock says, or None."""
    place = _load("pragma_web/place.py")
    lock = _load("pragma_web/supervisor/lock.py")
    var = Path(os.environ.get("PRAGMA_VAR", BASE / "var"))
    address: str | None = lock.running(place.run_directory(var))
    return address


def _load(path: str) -> ModuleType:
    """A module of the product that needs nothing but the standard library, without the package around it."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, BASE / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
