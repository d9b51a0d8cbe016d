"""Each process of the house is killed in turn: it is started anew, jobs go on, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import until
from tests.processes.house import ROOT, House, house
from tests.processes.problems import HANGS, PROBLEM

pytestmark = pytest.mark.processes

SLOW = PROBLEM.format(extra="time.sleep(10)")  # still at it when the station is killed, on a slow machine too


@pytest.fixture(scope="module")
def pragma() -> Iterator[House]:
    """One house for all that can be done to it without stopping it."""
    with house() as here:
        here.start()
        # Its ceilings are of no interest here, and measuring them takes the device for a quarter of a minute.
        until(lambda: here.rows("SELECT * FROM hosts_device"), "this machine did not join by itself")
        yield here


def ended(pragma: House, job: int) -> bool:
    return pragma.job(job)["state"] in ("done", "failed", "cancelled")


def in_jail(pragma: House, job: int, attempt: int) -> bool:
    row = pragma.job(job)
    return bool(row["in_jail"]) and row["attempt"] == attempt


def environment_of(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def test_each_process_sees_what_it_needs_and_nothing_else(pragma: House) -> None:
    station = environment_of(pragma.pid("station"))
    assert "REDIS_URL" in station
    assert not {"OPENAI_API_KEY", "PRAGMA_KEY", "DATABASE_URL", "PRAGMA_VAR", "EMAIL_HOST_PASSWORD"} & set(station)
    web, agents, server = (environment_of(pragma.pid(name)) for name in ("web", "agents", "server"))
    assert "OPENAI_API_KEY" in agents and "PRAGMA_KEY" in agents
    assert "PRAGMA_KEY" in web and not {"OPENAI_API_KEY", "EMAIL_HOST_PASSWORD"} & set(web)
    assert {"EMAIL_HOST_PASSWORD", "PRAGMA_KEY"} <= set(server) and "OPENAI_API_KEY" not in server
    assert "REDIS_URL" not in environment_of(pragma.pid("broker"))
    jailed = [process for process in pragma.everybody() if process.is_jailed]
    assert jailed and all(environment_of(process.pid) == {} for process in jailed)


def test_a_second_start_names_the_first_ones_address_and_leaves_it_alone(pragma: House) -> None:
    names = ("web", "agents", "server", "station", "broker")
    before = [pragma.pid(name) for name in names]
    said = pragma.command("-m", "pragma_web.supervisor")
    assert f"already runs at http://127.0.0.1:{pragma.port}/" in said
    said = pragma.command("tools/start.py")
    assert f"already runs at http://127.0.0.1:{pragma.port}/" in said
    assert [pragma.pid(name) for name in names] == before
    pragma.wait_whole()


def killed(pragma: House, name: str) -> None:
    """Kill one of the processes; it is started anew and says that it does its part."""
    before = pragma.pid(name)
    os.kill(before, signal.SIGKILL)
    until(lambda: pragma.pid(name) not in (0, before), f"{name} was not started anew")
    assert f"{name}: killed by SIGKILL; starting it anew" in pragma.said()


def test_killed_each_is_started_anew_and_the_job_in_hand_is_done(pragma: House) -> None:
    job = pragma.submit("others-killed", SLOW)
    until(lambda: pragma.job(job)["in_jail"], "the job did not begin", within=90)
    for name in ("web", "agents", "server", "broker"):
        killed(pragma, name)
    until(lambda: ended(pragma, job), f"the job was not done: {pragma.job(job)}", within=90)
    row = pragma.job(job)
    assert (row["state"], row["error"], row["attempt"], row["losses"]) == ("done", "", 1, 0)
    pragma.wait_whole()


def test_a_killed_station_takes_its_jails_along_and_the_job_is_done_again(pragma: House) -> None:
    job = pragma.submit("station-killed", SLOW)
    until(lambda: pragma.job(job)["in_jail"], "the job did not begin", within=90)
    jailed = [process for process in pragma.everybody() if process.is_jailed]
    killed(pragma, "station")
    until(lambda: not [process for process in jailed if process.lives], "a jail outlives its station")
    until(lambda: ended(pragma, job), f"the job was not done: {pragma.job(job)}", within=90)
    row = pragma.job(job)
    assert (row["state"], row["error"], row["attempt"]) == ("done", "", 2)


def test_a_cancelled_jobs_jail_is_killed_and_the_station_is_not(pragma: House) -> None:
    job, station = pragma.submit("cancelled", HANGS), pragma.pid("station")
    until(lambda: pragma.job(job)["in_jail"], "the job did not begin", within=90)
    jailed = [process for process in pragma.everybody() if process.is_jailed]
    script = pragma.var / "cancel.py"
    script.write_text(
        "import django\ndjango.setup()\nfrom apps.hosts import jobs\nfrom apps.hosts.models import Job\n"
        f"assert jobs.cancel(Job.objects.get(pk={job}), 'enough')\n"
    )
    pragma.command(str(script))
    assert pragma.job(job)["state"] == "cancelled"
    until(lambda: not [process for process in jailed if process.lives], "the jail still runs")
    assert pragma.pid("station") == station


def test_health_of_all_is_shown_in_one_place(pragma: House) -> None:
    pragma.wait_whole()
    said = pragma.command("manage.py", "health")
    assert all(name in said for name in ("supervisor", "web", "agents", "server", "station"))
    pragma.send("agents", signal.SIGSTOP)
    done = subprocess.run(
        [sys.executable, "manage.py", "health"],
        cwd=ROOT,
        env=pragma.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    pragma.send("agents", signal.SIGKILL)
    assert done.returncode == 1
    assert "does not answer" in done.stdout


def test_nothing_outlives_the_supervisor_however_it_ends() -> None:
    with house() as here:
        here.start()
        job = here.submit("hangs", HANGS)
        for attempt, number in ((1, signal.SIGKILL), (2, signal.SIGINT)):
            until(lambda n=attempt: in_jail(here, job, n), f"attempt {attempt} did not begin", within=90)
            had = here.everybody()
            # Broker and server worker went down with the station, so that nothing is held against the problem.
            assert here.job(job)["losses"] == 0
            assert len([process for process in had if process.is_jailed]) >= 2
            here.stop(number)
            until(lambda had=had: not [process for process in had if process.lives], "orphans are left")
            if number == signal.SIGKILL:
                here.start()
