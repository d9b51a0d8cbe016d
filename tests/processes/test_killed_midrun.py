"""A whole run, with every process killed in the middle of it, one after the other: it finishes by itself, and what was
done before a kill is not done again.

Between two kills the run is let on by one step of its journal and no more, so that on a machine of any speed it is still
in the middle when the last process is killed. Who is held back waits as for a database that is away.
"""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.patience import until
from tests.processes.house import House, house

pytestmark = pytest.mark.processes

# Small, so that a judgement takes seconds; long enough that each iteration has something to find.
PROBLEM = '''"""A swish with a bias."""

import torch
from torch import nn

ROWS = 512
COLUMNS = 2048


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        y = x + self.bias
        return y * torch.sigmoid(y)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
'''

LAUNCH = """
import django
django.setup()
import sys, time
from apps.hosts.models import Device
from apps.people.models import Person
from apps.runs import launch, problems
from apps.runs.launch import LaunchOrder
from apps.runs.models import Sizing, SizingState
person = Person.objects.create_user("ada")
problem = problems.add(person, open(sys.argv[1]).read())
until = time.monotonic() + 120
while time.monotonic() < until and Sizing.objects.get(problem=problem).state != SizingState.READY:
    time.sleep(0.2)
print(launch.launch(person, LaunchOrder(problem, str(Device.objects.get()), iterations=2)).pk)
"""

PROCESSES = ("agents", "station", "server", "broker", "web", "supervisor")
# Steps that are journalled when the first of them is killed; one more for each of the others. What stands first is the
# assignment, for which nobody waits. Before the first version is judged there are seven steps with that judgement, and
# its full judgement and the end come after: so many there are however soon the coder has nothing more to try.
FIRST = 2

HOLD = f"""
CREATE TABLE test_let_on (steps INTEGER);
INSERT INTO test_let_on VALUES ({FIRST});
CREATE TRIGGER test_held BEFORE INSERT ON runs_journalentry WHEN NEW.position >= (SELECT steps FROM test_let_on)
BEGIN SELECT json('held'); END;
"""


class RunSeen:
    """A run as its rows show it."""

    def __init__(self, pragma: House, number: int) -> None:
        self.pragma, self.number = pragma, number

    @property
    def state(self) -> str:
        return str(self.pragma.rows("SELECT state FROM runs_run WHERE id = ?", self.number)[0]["state"])

    @property
    def over(self) -> bool:
        return self.state in ("finished", "stopped", "failed")

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        rows = self.pragma.rows("SELECT * FROM runs_event WHERE run_id = ? ORDER BY id", self.number)
        return [row for row in rows if kind in (None, row["kind"])]

    def journal(self) -> dict[str, tuple[int, str, str]]:
        """Position, inputs and time of each step that is paid for, by key."""
        rows = self.pragma.rows("SELECT * FROM runs_journalentry WHERE run_id = ?", self.number)
        return {row["key"]: (row["position"], row["inputs"], row["at"]) for row in rows}

    def comes_to(self, steps: int, complaint: str) -> None:
        """Let it on until that many steps are journalled, and wait for it."""
        let_on(self.pragma, steps)
        until(lambda: len(self.journal()) == steps or self.over, f"{complaint}: {self.tail()}", within=120)

    def tail(self) -> str:
        """The end of its log."""
        return "\n".join(f"{row['seq']} {row['kind']} {row['text'][:120]}" for row in self.events()[-8:])


def let_on(pragma: House, steps: int | None) -> None:
    """Runs may journal that many steps, or all there are."""
    with closing(sqlite3.connect(pragma.var / "pragma.sqlite3", timeout=20)) as database, database:
        database.execute("UPDATE test_let_on SET steps = ?", (1_000_000 if steps is None else steps,))


def start(pragma: House) -> RunSeen:
    with closing(sqlite3.connect(pragma.var / "pragma.sqlite3", timeout=20)) as database:
        database.executescript(HOLD)
    pragma.start()
    until(lambda: pragma.rows("SELECT * FROM hosts_device"), "this machine did not join by itself", within=60)
    problem, script = pragma.var / "problem.py", pragma.var / "launch.py"
    problem.write_text(PROBLEM)
    script.write_text(LAUNCH)
    pragma.environment["DJANGO_SETTINGS_MODULE"] = "pragma_web.settings"
    return RunSeen(pragma, int(pragma.command(str(script), str(problem), seconds=150)))


@pytest.mark.timeout(600)
def test_a_run_finishes_though_each_process_is_killed_in_turn() -> None:
    with house() as pragma:
        run = start(pragma)
        before: list[dict[str, tuple[int, str, str]]] = []
        for steps, name in enumerate(PROCESSES, FIRST):
            run.comes_to(steps, f"nothing went on before {name} was killed")
            assert not run.over, run.tail()
            before.append(run.journal())
            if name == "supervisor":
                pragma.stop(signal.SIGKILL)
                pragma.start()
            else:
                pragma.send(name, signal.SIGKILL)
        let_on(pragma, None)
        until(lambda: run.over, f"the run does not finish: {run.tail()}", within=240)

        assert run.state == "finished", run.tail()
        journal = run.journal()
        assert [len(kept) for kept in before] == list(range(FIRST, FIRST + len(PROCESSES)))
        assert all(kept.items() <= journal.items() for kept in before), "a step that was journalled was done again"
        assert sorted(position for position, _, _ in journal.values()) == list(range(len(journal)))
        events = run.events()
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert len(run.events("run_ended")) == 1
        ended = [event["step"] for event in run.events("step_ended") if event["step"]]
        assert len(ended) == len(set(ended)), f"a step ended twice: {ended}"
        jobs = pragma.rows("SELECT key, state, attempt, result FROM hosts_job WHERE key LIKE 'run:%'")
        assert all(job["state"] == "done" for job in jobs)
        assert all(json.loads(job["result"])["verdict"] != "crashed" for job in jobs)
