"""A whole run, with every process killed in the middle of it, one after the other: it finishes by itself, and what was
done before a kill is not done again.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import pytest

from tests.processes.census import wait_until
from tests.processes.house import House, house

pytestmark = [pytest.mark.processes, pytest.mark.judge]

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
print(launch.launch(person, LaunchOrder(problem, str(Device.objects.get()), iterations=3)).pk)
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

    def moves_on(self, complaint: str) -> None:
        """Wait until one more step is journalled."""
        had = len(self.journal())
        wait_until(lambda: len(self.journal()) > had or self.over, f"{complaint}: {self.tail()}", within=120)

    def tail(self) -> str:
        """The end of its log."""
        return "\n".join(f"{row['seq']} {row['kind']} {row['text'][:120]}" for row in self.events()[-8:])


def start(pragma: House) -> RunSeen:
    pragma.start()
    wait_until(lambda: pragma.rows("SELECT * FROM hosts_device"), "this machine did not join by itself", within=60)
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
        for name in ("agents", "station", "server", "broker", "web", "supervisor"):
            run.moves_on(f"nothing went on before {name} was killed")
            if run.over:
                break
            before.append(run.journal())
            if name == "supervisor":
                pragma.stop(signal.SIGKILL)
                pragma.start()
            else:
                os.kill(pragma.pid(name), signal.SIGKILL)
        wait_until(lambda: run.over, f"the run does not finish: {run.tail()}", within=240)

        assert run.state == "finished", run.tail()
        assert len(before) >= 4, "the run was over before enough was killed"
        journal = run.journal()
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
