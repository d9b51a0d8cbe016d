"""python -m pragma_web.supervisor: run all of PRAGMA on this machine until Ctrl-C."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pragma_web.place import make_run_directory
from pragma_web.supervisor.broker import NoBroker
from pragma_web.supervisor.lock import Lock, running
from pragma_web.supervisor.processes import Installation, listen, own_host_name
from pragma_web.supervisor.supervisor import BrokerMissing, Supervisor

BASE = Path(__file__).resolve().parents[2]


def main() -> int:
    """0 when stopped or already running, 1 where it could not start (and why, on stderr)."""
    environment = dict(os.environ)
    var = Path(environment.get("PRAGMA_VAR", BASE / "var")).resolve()
    host = environment.get("PRAGMA_HOST", "127.0.0.1")
    try:
        run = make_run_directory(var)
        lock = Lock(run)
        if not lock.take():
            print(f"PRAGMA already runs at {running(run) or 'an address it will say in a moment'}")
            return 0
        listener = listen(host, environment.get("PRAGMA_PORT"))
        address = f"http://{_shown(host)}:{listener.getsockname()[1]}/"
        supervisor = Supervisor(Installation(BASE, var, run, environment, listener, own_host_name(environment)))
        lock.say(address)
        supervisor.say(f"PRAGMA runs at {address} (Ctrl-C stops it)")
        supervisor.run()
    except (OSError, NoBroker, BrokerMissing) as problem:
        print(f"PRAGMA can't start: {problem}", file=sys.stderr)
        return 1
    return 0


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - any address is also this machine's
        return "localhost"
    return f"[{host}]" if ":" in host else host


if __name__ == "__main__":
    sys.exit(main())
