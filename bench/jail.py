"""What a jail costs: from asking the zygote until jailed code runs, and until it is gone again.

python bench/jail.py [--rounds 40] [--modes root user light] [--against DIRECTORY]
`--against` names another checkout; the two are asked in turn, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
SERVE = """
import json, sys, time
from apps.kernels.jail import Zygote
with Zygote(sys.argv[1]) as zygote:
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        jailed = zygote.spawn("apps.kernels.inside.probe:look", {})
        jailed.receive(10)
        runs = time.perf_counter()
        jailed.close()
        print(json.dumps([1e3 * (runs - start), 1e3 * (time.perf_counter() - start)]), flush=True)
"""


@contextmanager
def serving(checkout: Path, mode: str) -> Iterator[subprocess.Popen[str]]:
    """A process with a zygote of that checkout, which spawns once for each line it reads."""
    command = [sys.executable, "-c", SERVE, mode]
    environment = {"PYTHONPATH": str(checkout), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(
        command, cwd="/", env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        process.stdout.readline()
        try:
            yield process
        finally:
            process.stdin.close()


def once(process: subprocess.Popen[str]) -> tuple[float, float]:
    """Milliseconds until jailed code runs, and until it is gone."""
    assert process.stdin and process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    runs, gone = json.loads(process.stdout.readline())
    return runs, gone


def main() -> None:
    """Print a line for each mode and checkout."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--modes", nargs="+", default=["root", "user", "light"])
    parser.add_argument("--against", type=Path)
    given = parser.parse_args()
    checkouts = [ROOT, *([given.against] if given.against else [])]
    for mode in given.modes:
        with ExitStack() as stack:
            processes = [stack.enter_context(serving(checkout, mode)) for checkout in checkouts]
            for process in processes:
                once(process)
            times = [[once(process) for process in processes] for _ in range(given.rounds)]
        for index, checkout in enumerate(checkouts):
            runs = statistics.median(row[index][0] for row in times)
            gone = statistics.median(row[index][1] for row in times)
            print(f"{mode:6} {checkout}: runs after {runs:.1f} ms, gone after {gone:.1f} ms")
        if len(checkouts) == 2:
            extra = [here[0] - there[0] for here, there in times]
            print(f"{mode:6} paired difference until it runs: {statistics.median(extra):+.1f} ms")


if __name__ == "__main__":
    main()
