"""Every page asks the database as few questions of a large team's rows as of a small one's, and stays light."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bench.large.building import build
from bench.large.routes import ADDRESSES, DOWNLOADS, LEFT_OUT, addresses, names_of_routes
from bench.large.size import Size

# Such that the runs looked at are of one kind: the same coder, state and number of versions.
SMALL, LARGE = Size(runs=32, events=300, versions=64), Size(runs=112, events=1500, versions=200)
LARGEST = 600_000  # bytes of a page
NO_ROWS = ("healthz", "link", "api-schema", "api-docs")


@dataclass(frozen=True)
class Asked:
    """What one address came to."""

    queries: int
    size: int


def asked(size: Size) -> dict[str, Asked]:
    """Every address as an admin sees it, in a team of that size, which is gone afterwards."""
    found: dict[str, Asked] = {}
    with transaction.atomic():
        large = build(size)
        client = Client()
        client.force_login(large.world.people[0])
        client.get("/")  # what is asked once a process is asked now
        for address in addresses(large):
            if address.download or address.name in NO_ROWS:
                continue
            with CaptureQueriesContext(connection) as queries:
                answer = client.get(address.path)
            assert answer.status_code in (200, 204, 302), address.path
            found[address.pattern] = Asked(len(queries), len(answer.content))
        transaction.set_rollback(True)
    return found


@pytest.mark.django_db
def test_no_page_asks_more_of_a_larger_team_or_grows_with_it() -> None:
    small, large = asked(SMALL), asked(LARGE)
    more = {address: (small[address].queries, one.queries) for address, one in large.items()}
    assert {address: both for address, both in more.items() if both[1] > both[0]} == {}
    assert {address: one.size for address, one in large.items() if one.size > LARGEST} == {}


def test_the_benchmark_forgets_no_route() -> None:
    assert set(names_of_routes()) == {*ADDRESSES, *DOWNLOADS, *LEFT_OUT}
