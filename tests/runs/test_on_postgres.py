"""Claims, event numbers, journal, live views, money and rows written once, on a PostgreSQL cluster of the test's own."""

from __future__ import annotations

from tests.on_postgres import hold_on_postgres, on_postgres


@on_postgres
def test_what_holds_on_sqlite_holds_on_postgres() -> None:
    hold_on_postgres(
        "runs/test_claims.py",
        "runs/test_event_numbers.py",
        "runs/test_a_worker_dies_in_a_recorded_run.py",
        "runs/test_watching_a_run_live.py",
        "ledger/test_reservations.py",
        "people/test_the_audit_log.py",
        "people/test_rows_written_once.py",
        "upkeep/test_a_backup_comes_back.py",
    )
