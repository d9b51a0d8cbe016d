"""Claims, event numbers, journal, live views and reservations of money once more, on a PostgreSQL cluster of the test's own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bench import private_servers as servers

HERE = Path(__file__).parent
TESTS = [
    "test_claims.py",
    "test_event_numbers.py",
    "test_a_worker_dies_in_a_recorded_run.py",
    "test_watching_a_run_live.py",
    "../ledger/test_reservations.py",
    "../people/test_the_audit_log.py",
    "../upkeep/test_a_backup_comes_back.py",
]


@pytest.mark.postgres
@pytest.mark.processes
@pytest.mark.skipif(
    os.environ.get("DATABASE_URL", "").startswith("postgres"), reason="all tests run on PostgreSQL already"
)
def test_what_holds_on_sqlite_holds_on_postgres() -> None:
    with tempfile.TemporaryDirectory(prefix="pragma-pg-") as folder:
        try:
            with servers.postgres(Path(folder) / "cluster") as address:
                command = [
                    sys.executable,
                    "-m",
                    "pytest",
                    "-q",
                    "-p",
                    "no:cacheprovider",
                    *(str(HERE / name) for name in TESTS),
                ]
                environment = {**os.environ, "DATABASE_URL": address}
                environment.pop("PYTEST_XDIST_WORKER", None)
                done = subprocess.run(
                    command, cwd=servers.ROOT, env=environment, capture_output=True, text=True, timeout=280, check=False
                )
        except servers.NotHere as missing:
            pytest.skip(str(missing))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout
