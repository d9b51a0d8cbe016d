"""Tests run once more on a PostgreSQL cluster of the test's own, where they hold on SQLite."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from bench import private_servers as servers

HERE = Path(__file__).parent
WITHIN = 800  # seconds: many tests in one


def on_postgres(test: Any) -> Any:
    """Marks what calls `hold_on_postgres`: it starts processes, and says nothing new where all runs on PostgreSQL already."""
    already = os.environ.get("DATABASE_URL", "").startswith("postgres")
    test = pytest.mark.skipif(already, reason="all tests run on PostgreSQL already")(test)
    return pytest.mark.postgres(pytest.mark.processes(pytest.mark.timeout(WITHIN + 60)(test)))


def hold_on_postgres(*tests: str) -> None:
    """Fails where one of these files (named from tests/) fails or skips a test; skips where there is no PostgreSQL."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(HERE / name) for name in tests)]
    with tempfile.TemporaryDirectory(prefix="pragma-pg-") as folder:
        try:
            with servers.postgres(Path(folder) / "cluster") as address:
                environment = {**os.environ, "DATABASE_URL": address}
                environment.pop("PYTEST_XDIST_WORKER", None)
                done = subprocess.run(
                    command,
                    cwd=servers.ROOT,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=WITHIN,
                    check=False,
                )
        except servers.NotHere as missing:
            pytest.skip(str(missing))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout
