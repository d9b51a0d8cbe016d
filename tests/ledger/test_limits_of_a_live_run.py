"""A person changes a live run's limits on its page: iterations, minutes, dollars, tokens."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.test import Client

from apps.runs.models import Event, Run, RunState

pytestmark = pytest.mark.django_db
SHOWN = {"iterations": "3", "minutes": "1.5", "money": "2.5", "tokens": "90000"}


@pytest.fixture
def run(make_run: Callable[..., Run]) -> Run:
    limits = {"seconds_limit": 90.0, "money_limit_usd": Decimal("2.500000"), "tokens_limit": 90_000}
    return make_run(coder="scripted", state=RunState.RUNNING, **limits)


def changed(client: Client, run: Run, **typed: str) -> dict[str, object]:
    client.post(f"/runs/{run.pk}/order/", {"do": "limits", **SHOWN, **typed})
    run.refresh_from_db()
    told = Event.objects.filter(run=run, kind="limits_changed").order_by("-seq").first()
    return {name: value for name, value in told.data.items() if name != "by"} if told else {}


def test_the_form_has_what_holds(signed_in: Client, run: Run) -> None:
    page = signed_in.get(f"/runs/{run.pk}/").content.decode()
    for name, value in SHOWN.items():
        field = page[page.index(f'id="new-{name}"') :].partition(">")[0]
        assert f'value="{value}"' in field


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ({"iterations": "9"}, {"iterations": 9.0}),
        ({"minutes": "30"}, {"seconds": 1800.0}),
        ({"money": "7.25"}, {"money_usd": 7.25}),
        ({"tokens": "120000"}, {"tokens": 120_000.0}),
        ({"tokens": "120000", "money": "", "minutes": ""}, {"tokens": 120_000.0}),
    ],
)
def test_only_what_is_typed_anew_changes(
    signed_in: Client, run: Run, typed: dict[str, str], told: dict[str, float]
) -> None:
    assert changed(signed_in, run, **typed) == told
    now = (run.iterations, run.seconds_limit, run.money_limit_usd, run.tokens_limit)
    columns = {"iterations": 3, "seconds": 90.0, "money_usd": Decimal("2.5"), "tokens": 90_000}
    assert now == tuple(told.get(name, value) for name, value in columns.items())


@pytest.mark.parametrize("typed", [{"tokens": "0"}, {"tokens": "many"}, {"minutes": "-1"}, {"money": "nan"}, {}])
def test_what_is_no_new_limit_changes_nothing_and_says_why(signed_in: Client, run: Run, typed: dict[str, str]) -> None:
    assert changed(signed_in, run, **typed) == {}
    assert 'class="notice bad' in signed_in.get(f"/runs/{run.pk}/").content.decode()
