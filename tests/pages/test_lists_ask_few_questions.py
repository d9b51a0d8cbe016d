"""A list asks the database the same few questions however long it is."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.ledger.models import LanguageModel
from tests.pages import factories, scenes


def asked(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


def grow(world: dict[str, Any]) -> None:
    """As many again of everything: runs with versions, problems, hosts."""
    for number in range(3):
        scenes.finished(owner=world["colleague"], sizing=world["live"].sizing, device=world["device"])
        problem = factories.ProblemFactory.create(slug=f"more-{number}", title=f"More {number}", source=f"# {number}\n")
        factories.SizingFactory.create(problem=problem)
        factories.DeviceFactory.create(host=factories.HostFactory.create(name=f"more-{number}"))
        LanguageModel.objects.create(name=f"more-{number}", model_id="openai/more")
        factories.PersonFactory.create(username=f"more-{number}")


@pytest.mark.parametrize(
    ("address", "most"),
    [
        ("/settings/models/", 9),
        ("/settings/limits/", 14),
        ("/", 14),
        ("/problems/", 11),
        ("/hosts/", 9),
        ("/problems/softsign/", 14),
        ("/launch/?problem=softsign", 14),
    ],
)
def test_a_longer_list_asks_no_more(ada: Client, world: dict[str, Any], address: str, most: int) -> None:
    ada.get(address)  # what is asked once a process is asked now
    before = asked(ada, address)
    grow(world)
    assert asked(ada, address) == before
    assert before <= most


def test_a_run_with_more_versions_asks_no_more(ada: Client, world: dict[str, Any]) -> None:
    live, done = f"/runs/{world['live'].pk}/", f"/runs/{world['done'].pk}/"
    ada.get(live)
    before = asked(ada, live)
    for number in range(5, 9):
        evaluation = factories.evaluations.correct(0.4)
        factories.keep(world["live"], number, evaluation, source=f"# {number}\n", summary="")
        factories.advise(world["live"], number, number, True, 1.4)
    assert asked(ada, live) == before
    assert before <= 22
    assert asked(ada, done) <= 22


def test_the_head_of_a_run_reads_no_evaluation(ada: Client, world: dict[str, Any]) -> None:
    with CaptureQueriesContext(connection) as queries:
        ada.get(f"/runs/{world['live'].pk}/part/head/")
    assert not [query for query in queries if '"evaluation"' in query["sql"]]
