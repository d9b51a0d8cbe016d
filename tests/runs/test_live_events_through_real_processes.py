"""Events from a writer in one process to browsers of another, through a real web process and a real broker."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

BENCH = Path(__file__).resolve().parents[2] / "bench" / "live_events.py"
LOAD = ["--seconds", "2", "--clients", "8", "--runs", "2", "--rate", "40"]
NOT_HERE = 2


def test_each_event_reaches_each_browser_once_and_in_order() -> None:
    # A process of its own: a browser that other tests keep open has an event loop running in this one.
    bench = subprocess.run([sys.executable, str(BENCH), *LOAD, "--json"], capture_output=True, text=True, timeout=180)
    if bench.returncode == NOT_HERE and "lacks what it takes" in bench.stderr:
        pytest.skip(bench.stderr.strip())
    assert bench.returncode == 0, bench.stderr + bench.stdout
    found = json.loads(bench.stdout)
    assert found["received"] == 8 * 80
    assert (found["gaps"], found["doubles"]) == (0, 0)
