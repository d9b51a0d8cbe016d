"""A host's torch and compiler change under accepted kernels: its station judges each of them again, and people see and hear
what came of it. Real processes: broker, server worker, station and its jail.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import until
from tests.processes.house import House, house

pytestmark = [pytest.mark.processes, pytest.mark.judge, pytest.mark.timeout(900)]

# A product with a diagonal matrix: who does not make it is faster by far on any machine, who makes it in plain loops is not.
PROBLEM = '''"""A diagonal matrix times a matrix, for a kernel that is {kind}."""

import torch
from torch import nn

ROWS = 384
COLUMNS = 512


class Model(nn.Module):
    def forward(self, diagonal, matrix):
        return torch.diag(diagonal) @ matrix


def get_inputs():
    return [torch.randn(ROWS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
'''

# As it was: proposed, approved and accepted on evidence that was gathered with an older torch and compiler. Of the three
# kernels one still holds; what was said of the other two is no longer so.
ACCEPT = """
import django
django.setup()
import json, sys
from dataclasses import replace
from apps.hosts.models import Device, Host
from apps.kernels.evaluation import Tier
from apps.people.models import Role
from apps.reviews import accepting, proposing, votes
from apps.runs import problems
from apps.runs.models import Origin, Purpose
from tests.judge.house import candidate
from tests.pages import evaluations, factories

device = Device.objects.select_related("host").get()
report = device.host.report
report["torch"] = "2.6.0"
report["toolchains"]["g++"] = "11.4.0"
Host.objects.filter(pk=device.host_id).update(report=report)
ann = factories.PersonFactory.create(username="ann", role=Role.ENGINEER)
bo = factories.PersonFactory.create(username="bo", role=Role.REVIEWER)
C = '''
extern "C" void scale(
    const float* __restrict d, const float* __restrict m, float* __restrict y, int64_t rows, int64_t columns) {
  %s
}
'''
FORWARD = '''
y = torch.empty_like(matrix)
LIB.scale(P(diagonal), P(matrix), P(y), N(matrix.shape[0]), N(matrix.shape[1]))
return y
'''
ROWS = '''for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) y[i * columns + j] = d[i] * m[i * columns + j]%s;'''
PRODUCT = '''std::vector<float> whole(rows * rows, 0.0f);
  for (int64_t i = 0; i < rows; ++i) whole[i * rows + i] = d[i];
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      float sum = 0.0f;
      for (int64_t k = 0; k < rows; ++k) sum += whole[i * rows + k] * m[k * columns + j];
      y[i * columns + j] = sum;
    }'''
made = {}
for kind, body in (("right", ROWS % ""), ("wrong", ROWS % " * 1.25f"), ("slow", PRODUCT)):
    source = candidate(C % body, FORWARD, arguments="diagonal, matrix")
    problem = problems.add(ann, open(sys.argv[1]).read().replace("{kind}", kind), origin=Origin.PASTED, look=False)
    sizing = problems.sizing_of(problem, {})
    run = factories.RunFactory.create(problem=problem, sizing=sizing, device=device, owner=ann, state="finished")
    version = factories.keep(run, 1, evaluations.correct(0.4, Tier.FULL), source=source, summary=kind)
    proposal = proposing.propose(ann, version, asked=[bo])
    votes.vote(proposal.pk, bo, "approve", proposal.digest, "Right.")
    made[kind] = accepting.accept(proposal.pk, bo, proposal.digest).pk
print(json.dumps(made))
"""

# What the kernels' pages and the bells say.
LOOK = """
import django
django.setup()
import json, sys
from django.test import Client
from apps.notices.models import Notice
from apps.people.models import Person
from apps.reviews.models import AcceptedKernel
told = {}
for kernel in AcceptedKernel.objects.all():
    client = Client(headers={"host": "localhost"})
    client.force_login(Person.objects.get(username="ann"))
    notices = Notice.objects.filter(link=kernel.get_absolute_url()).order_by("id")
    told[kernel.pk] = {
        "page": client.get(kernel.get_absolute_url()).content.decode(),
        "notices": [[one.person.username, one.title, one.text] for one in notices],
        "doubt": kernel.doubt, "detail": kernel.doubt_detail, "torch": kernel.environment["torch"],
        "held": [check.held for check in kernel.checks.all()],
    }
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    with house() as here:
        here.start()
        yield here


def script(running: House, text: str, *words: str) -> dict[str, Any]:
    path = running.var / "script.py"
    path.write_text(text)
    running.environment["DJANGO_SETTINGS_MODULE"] = "pragma_web.settings"
    said: dict[str, Any] = json.loads(running.command(str(path), *words).splitlines()[-1])
    return said


def test_what_changed_is_judged_again_shown_and_told(running: House) -> None:
    until(lambda: running.rows("SELECT id FROM hosts_device"), "no host joins", within=120)
    source = running.var / "problem.py"
    source.write_text(PROBLEM)
    kernels = script(running, ACCEPT, str(source))

    station = running.pid("station")
    os.kill(station, signal.SIGKILL)
    until(lambda: running.pid("station") not in (0, station), "the station does not come back", within=120)
    flagged = "SELECT id FROM reviews_decision WHERE kind = 'doubted' AND text LIKE '%g++ 11.4.0 → %torch 2.6.0 → %'"
    until(lambda: len(running.rows(flagged)) == 3, "nothing is flagged", within=120)
    until(lambda: len(running.rows("SELECT id FROM reviews_check")) == 3, "not all are judged", within=600)

    told = script(running, LOOK)
    right, wrong, slow = (told[str(kernels[kind])] for kind in ("right", "wrong", "slow"))
    assert (right["held"], right["doubt"]) == ([True], "")
    assert right["torch"] != "2.6.0", "its evidence is of the host as it is now"
    assert "✓ held" in right["page"]
    assert (wrong["held"], wrong["doubt"]) == ([False], "failed")
    assert "incorrect" in wrong["detail"]
    assert (slow["held"], slow["doubt"]) == ([False], "failed")
    assert "slower" in slow["detail"]
    for one in (wrong, slow):
        assert "✕ did not hold" in one["page"] and one["detail"] in one["page"]
        assert "no longer holds" in one["page"]
        assert one["torch"] == "2.6.0", "what it was accepted with stays on record"
        for name in ("ann", "bo"):
            heard = [title for who, title, _ in one["notices"] if who == name]
            assert [("has changed" in title, "no longer holds" in title) for title in heard] == [
                (True, False),
                (False, True),
            ]
