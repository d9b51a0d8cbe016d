"""Lists of REST, of the settings and of notices ask the database the same few questions however long they are."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.hosts.models import Fault
from apps.ledger.models import Call, LanguageModel
from apps.notices.models import Kind, Notice
from apps.people import audit, tokens
from tests.pages.test_lists_ask_few_questions import asked, grow


def grow_all(world: dict[str, Any], times: str) -> None:
    """More of everything that any of these lists shows."""
    grow(world)
    admin, host = world["person"], world["device"].host
    model = LanguageModel.objects.create(name=f"called-{times}", model_id="openai/x")
    for number in range(3):
        audit.record("host.drained", admin, host)
        tokens.make(admin, f"{times}-{number}", [], 30)
        Notice.objects.create(person=admin, kind=Kind.RUN_ENDED, title="x", key=f"{times}-{number}", link="/")
        Fault.objects.create(host=host, device=world["device"], what="x")
        columns = {"model": model, "person": world["colleague"], "run": world["done"].pk, "agent": "coder"}
        now = Notice.objects.latest("pk").at
        Call.objects.create(**columns, month=now.date().replace(day=1), began_at=now, expires_at=now)


REST = (
    "problems", "runs", "evaluations", "hosts", "models", "calls", "members", "notices", "tokens", "audit", "limits",
    "reviews", "kernels", "webhooks", "runs/{done}/versions", "runs/{done}/versions/3/measurements", "hosts/{host}/faults",
    "hosts/{host}/queue",
)  # fmt: skip
PAGES = (
    "/notices/", "/settings/members/", "/settings/tokens/", "/settings/audit/", "/settings/notifications/",
    "/runs/{done}/calls/", "/hosts/{host}/",
)  # fmt: skip


@pytest.mark.parametrize("address", [*(f"/api/v1/{name}/" for name in REST), *PAGES])
def test_a_longer_list_asks_no_more(ada: Client, world: dict[str, Any], address: str) -> None:
    grow_all(world, "first")
    address = address.format(done=world["done"].pk, host=world["device"].host.name)
    ada.get(address)  # what is asked once a process is asked now
    before = asked(ada, address)
    grow_all_again(world)
    assert asked(ada, address) == before
    assert before <= 16


def grow_all_again(world: dict[str, Any]) -> None:
    """As `grow_all`, under other names."""
    from tests.pages import evaluations, factories, scenes

    for number in range(3):
        run = scenes.finished(owner=world["colleague"], sizing=world["live"].sizing, device=world["device"])
        version = world["done"].versions.get(number=3)
        factories.measure(version, evaluations.correct(0.6 + number / 10))
        factories.keep(world["done"], 40 + number, evaluations.correct(0.5), source=f"# {number}", summary="")
        factories.DeviceFactory.create(host=factories.HostFactory.create(name=f"again-{number}"))
        person = factories.PersonFactory.create(username=f"again-{number}")
        now = run.created_at
        model = LanguageModel.objects.create(name=f"again-{number}", model_id="openai/x")
        columns = {"model": model, "person": person, "run": world["done"].pk, "agent": "coder"}
        Call.objects.create(**columns, month=now.date().replace(day=1), began_at=now, expires_at=now)
        audit.record("host.drained", person, world["device"].host)
        tokens.make(world["person"], f"again-{number}", [], 30)
        Notice.objects.create(person=world["person"], kind=Kind.RUN_ENDED, title="x", key=f"again-{number}", link="/")
        Fault.objects.create(host=world["device"].host, device=world["device"], what="x")
