"""The first start makes everything, the second finds it made, and a start on an older database keeps a copy of it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pragma_web.place import LONGEST, run_directory
from pragma_web.supervisor.environment import MODELS, chosen
from pragma_web.supervisor.logfile import LogFile
from tests.processes.house import House, free_port

pytestmark = pytest.mark.processes

PREPARE = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "pragma_web.settings"
from pragma_web.prepare import CannotPrepare, prepare
try:
    prepare(print)
except CannotPrepare as problem:
    print("REFUSED", problem)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, str]]:
    """An installation that was made ready once, and what that said."""
    here = House(tmp_path_factory.mktemp("var"), free_port())
    del here.environment["PRAGMA_KEY"]
    yield here, prepared(here)


def prepared(here: House) -> str:
    script = here.var / "prepare.py"
    script.write_text(PREPARE)
    return here.command(str(script), seconds=120)


def test_an_admin_is_created_and_the_password_shown_once(made: tuple[House, str]) -> None:
    here, said = made
    password = re.search(r"password (\S{16}) ", said)
    assert password is not None
    assert "password" not in prepared(here)
    people = here.rows("SELECT username, role, password FROM people_person")
    assert [(person["username"], person["role"]) for person in people] == [("admin", "admin")]
    assert password[1] not in people[0]["password"]
    assert all(password[1] not in path.read_text(errors="replace") for path in here.var.rglob("*.log"))


def test_the_secret_is_its_owners_alone(made: tuple[House, str]) -> None:
    secret = made[0].var / "secret"
    assert len(secret.read_text().strip()) >= 50
    assert secret.stat().st_mode & 0o077 == 0


def test_starter_problems_and_static_files_are_there(made: tuple[House, str]) -> None:
    here, _ = made
    assert len(here.rows("SELECT id FROM runs_problem")) == 17
    assert (here.var / "static" / "css" / "base.css").exists()


def test_an_older_database_is_copied_and_brought_up_to_date(made: tuple[House, str]) -> None:
    here, _ = made
    assert not (here.var / "copies").exists()
    here.command("manage.py", "migrate", "sessions", "zero", "--verbosity", "0")
    said = prepared(here)
    copy = Path(re.search(r"kept as (\S+)", said)[1])  # type: ignore[index]
    with closing(sqlite3.connect(copy)) as database:
        assert database.execute("SELECT count(*) FROM people_person").fetchone() == (1,)
        assert not database.execute("SELECT name FROM sqlite_master WHERE name = 'django_session'").fetchall()
    assert here.rows("SELECT name FROM sqlite_master WHERE name = 'django_session'")
    assert len(here.rows("SELECT id FROM people_person")) == 1


def test_a_newer_database_is_left_alone(made: tuple[House, str]) -> None:
    here, _ = made
    with closing(sqlite3.connect(here.var / "pragma.sqlite3")) as database, database:
        database.execute(
            "INSERT INTO django_migrations (app, name, applied) VALUES ('runs', '0999_later', '2030-01-01')"
        )
    assert "REFUSED This database comes from a newer PRAGMA (it has runs.0999_later)" in prepared(here)
    with closing(sqlite3.connect(here.var / "pragma.sqlite3")) as database, database:
        database.execute("DELETE FROM django_migrations WHERE name = '0999_later'")
    assert "REFUSED" not in prepared(here)


def test_sockets_find_a_short_place_when_the_path_is_long(tmp_path: Path) -> None:
    assert run_directory(Path("/srv/pragma/var")) == Path("/srv/pragma/var/run")
    long = tmp_path / ("x" * LONGEST)
    assert len(str(run_directory(long) / "supervisor.sock")) < 100
    assert run_directory(long) == run_directory(long)
    assert run_directory(long) != run_directory(tmp_path / ("y" * LONGEST))


def test_only_model_providers_variables_go_to_the_agents() -> None:
    there = {
        "OPENAI_API_KEY": "1",
        "MISTRAL_API_KEY": "2",
        "DATABASE_URL": "3",
        "API_KEY_OF_OTHERS": "4",
        "HTTPS_PROXY": "5",
    }
    assert set(chosen(there, MODELS)) == {"OPENAI_API_KEY", "MISTRAL_API_KEY", "HTTPS_PROXY"}


def test_logs_are_turned_over_and_the_oldest_dropped(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "web.log", largest=100, kept=2)
    for number in range(40):
        log.write(f"line {number:04d}\n".encode())
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["web.log", "web.log.1", "web.log.2"]
    kept = b"".join((tmp_path / name).read_bytes() for name in ("web.log.2", "web.log.1", "web.log"))
    lines = kept.decode().split("\n")[:-1]
    assert lines == [f"line {number:04d}" for number in range(40 - len(lines), 40)]
    assert all(path.stat().st_size <= 100 for path in tmp_path.iterdir())
