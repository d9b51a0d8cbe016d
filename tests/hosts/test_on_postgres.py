"""Jobs, reports and losses once more, on a PostgreSQL cluster of the test's own."""

from __future__ import annotations

from tests.on_postgres import hold_on_postgres, on_postgres


@on_postgres
def test_what_holds_on_sqlite_holds_on_postgres() -> None:
    hold_on_postgres(
        "hosts/test_asking_a_device_for_work.py", "hosts/test_taking_reports_in.py", "hosts/test_losing_a_station.py"
    )
