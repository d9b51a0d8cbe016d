"""A whole judgement by somebody who is not root and may not make namespaces: what a jail needs least of."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from tests.jail.somebody import run_as
from tests.jail.test_a_helper_beside_the_candidate import PROBLEM
from tests.judge.house import HONEST_SWISH, swish

pytestmark = pytest.mark.judge


def test_it_reaches_a_verdict_and_a_time() -> None:
    with tempfile.TemporaryDirectory(prefix="pragma-open-") as place:  # pytest's own is closed to others
        Path(place).chmod(0o755)
        problem, candidate = Path(place) / "problem.py", Path(place) / "candidate.py"
        problem.write_text(PROBLEM)
        candidate.write_text(swish(HONEST_SWISH))
        words = ["evaluate", str(problem), str(candidate), "--tier", "quick", "--no-profile", "--json"]
        done = run_as("ordinary user without namespaces", ["-m", "apps.kernels", *words])
    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["verdict"] == "correct" and said["timing"]["candidate"]["median_ms"] > 0
    assert (said["isolation"]["mode"], said["isolation"]["level"]) == ("light", "partial")
