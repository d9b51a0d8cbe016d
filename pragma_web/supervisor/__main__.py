"""python -m pragma_web.supervisor [--prepare]: run all of PRAGMA on this machine until Ctrl-C.

--prepare first brings database, static files and accounts up to date, and launches a first run on a new installation.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from pragma_web.place import make_run_directory
from pragma_web.prepare import CannotPrepare, prepare
from pragma_web.supervisor.broker import NoBroker
from pragma_web.supervisor.lock import Lock, running
from pragma_web.supervisor.processes import Installation, first_run, listen, own_host_name
from pragma_web.supervisor.supervisor import BrokerMissing, Supervisor

BASE = Path(__file__).resolve().parents[2]
FIRST_RUN = "first-run.stamp"  # there once a first run was launched


def main(words: list[str] | None = None) -> int:
    """0 when stopped or already running, 1 where it could not start (and why, on stderr)."""
    parser = argparse.ArgumentParser("python -m pragma_web.supervisor")
    parser.add_argument("--prepare", action="store_true", help="make the installation ready first, launch a first run")
    given = parser.parse_args(words)
    environment = dict(os.environ)
    var = Path(environment.get("PRAGMA_VAR", BASE / "var")).resolve()
    host = environment.get("PRAGMA_HOST", "127.0.0.1")
    try:
        run = make_run_directory(var)
        lock = Lock(run)
        if not lock.take():
            print(f"PRAGMA already runs at {running(run) or 'an address it will say in a moment'}")
            return 0
        if given.prepare:
            prepare(lambda text: print(text, flush=True))
        listener = listen(host, environment.get("PRAGMA_PORT"))
        address = f"http://{_shown(host)}:{listener.getsockname()[1]}/"
        here = Installation(BASE, var, run, environment, listener, own_host_name(environment))
        supervisor = Supervisor(here)
        lock.say(address)
        if given.prepare and not (var / FIRST_RUN).exists():
            supervisor.then_once(first_run(here, address), stamp=var / FIRST_RUN)
        supervisor.say(f"PRAGMA runs at {address} (Ctrl-C stops it)")
        supervisor.run()
    except (OSError, NoBroker, BrokerMissing, CannotPrepare) as problem:
        print(f"PRAGMA can't start: {problem}", file=sys.stderr)
        return 1
    return 0


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - any address is also this machine's
        return "localhost"
    return f"[{host}]" if ":" in host else host


if __name__ == "__main__":
    sys.exit(main())
