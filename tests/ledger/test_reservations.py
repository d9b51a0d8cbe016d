"""Money is set aside before it is spent: runs side by side, dead workers, months, and prices nobody knows."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apps.agents.gateway.purse import Call as Made
from apps.agents.gateway.purse import Largest, OverLimit, Question
from apps.agents.words import Usage
from apps.ledger import accounts, limits, spending
from apps.ledger.accounts import Place
from apps.ledger.limits import Account
from apps.ledger.models import Call, LanguageModel, Limits, Outcome, PersonLimit
from apps.people.models import Person

pytestmark = pytest.mark.django_db(transaction=True)
WRITE = Place("coder", "1.0.write.0", 1, 0, 0)


@pytest.fixture
def priced(db: None) -> LanguageModel:
    return LanguageModel.objects.create(name="m", model_id="openai/m", call_seconds=60)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[datetime]]:
    """The time of day, which a test may set."""
    now = [datetime(2026, 11, 30, 23, 59, tzinfo=UTC)]
    monkeypatch.setattr(accounts.timezone, "now", lambda: now[0])
    yield now


def made(cost: float | None = 0.02, failure: str | None = None, **more: Any) -> Made:
    usage = Usage(1.5, "openai/m", 1000, 200, cost, tokens_cached=300, tokens_reasoning=50)
    return Made("openai/m", Question(()), "", "answer", failure is None, usage, failure, **more)


def at_once(many: int, do: Callable[[int], object]) -> int:
    """How many of so many threads, all at once, were let through."""

    def one(number: int) -> int:
        try:
            do(number)
        except OverLimit:
            return 0
        finally:
            connection.close()
        return 1

    with ThreadPoolExecutor(8) as threads:
        return sum(threads.map(one, range(many)))


@pytest.mark.parametrize("whose", ["run", "person", "team", "run's tokens"])
def test_calls_side_by_side_never_set_more_aside_than_is_left(
    priced: LanguageModel, person: Person, whose: str
) -> None:
    if whose == "person":
        PersonLimit.objects.create(person=person, month_usd=1)
    Limits.objects.create(pk=1, team_month_usd=1 if whose == "team" else None)

    def reserve(number: int) -> int:
        run_limit = Decimal(1) if whose == "run" else None
        tokens = 12_500 if whose == "run's tokens" else None
        owner = person.pk if whose == "person" else None
        account = Account(7 if whose.startswith("run") else number, owner, "Ada", run_limit, tokens)
        return accounts.reserve(priced, account, WRITE, Largest(0.1, 1200))

    assert at_once(24, reserve) == 10
    assert limits.counted(Call.objects.all()) == Decimal(1)
    assert sum(Call.objects.values_list("counted_tokens", flat=True)) == 12_000


def test_the_first_calls_of_all_may_come_at_once(priced: LanguageModel) -> None:
    """The row that reservations lock is made by one of them."""
    assert at_once(8, lambda number: accounts.reserve(priced, Account(number, None), WRITE, Largest(0.1, 1200))) == 8
    assert Limits.objects.count() == 1


def test_what_was_set_aside_and_not_spent_can_be_spent_again(priced: LanguageModel) -> None:
    account = Account(1, None, run_limit_usd=Decimal("0.50"))
    first = accounts.reserve(priced, account, WRITE, Largest(0.4, 1200))
    with pytest.raises(OverLimit, match=r"The run's limit of \$0\.5000 leaves \$0\.1000.*could cost \$0\.4000"):
        accounts.reserve(priced, account, WRITE, Largest(0.4, 1200))
    accounts.settle(first, made(0.02))
    accounts.reserve(priced, account, WRITE, Largest(0.4, 1200))
    call = Call.objects.get(pk=first)
    assert (call.outcome, call.cost_usd, call.counted_usd) == (Outcome.ANSWERED, Decimal("0.02"), Decimal("0.02"))
    assert (call.tokens_in, call.tokens_out, call.tokens_cached, call.tokens_reasoning) == (1000, 200, 300, 50)


@pytest.mark.parametrize(
    ("how", "outcome"),
    [
        ({"failure": "Quota: nothing left.", "fault": "quota"}, Outcome.FAILED),
        ({"failure": "Stopped by Ada."}, Outcome.STOPPED),
    ],
)
def test_how_a_call_ended_is_kept(priced: LanguageModel, how: dict[str, str], outcome: str) -> None:
    number = accounts.reserve(priced, Account(1, None), WRITE, Largest(0.4, 1200))
    accounts.settle(number, made(**how))
    call = Call.objects.get(pk=number)
    assert (call.outcome, call.failure, call.fault) == (outcome, how["failure"], how.get("fault", ""))


def test_a_worker_that_takes_a_run_over_frees_what_the_dead_one_had_set_aside(priced: LanguageModel) -> None:
    account = Account(1, None, run_limit_usd=Decimal("0.50"))
    dead, heir = uuid.uuid4(), uuid.uuid4()
    lost = accounts.reserve(priced, account, WRITE, Largest(0.4, 1200), dead)
    other = accounts.reserve(priced, Account(2, None), WRITE, Largest(0.4, 1200), dead)
    accounts.reserve(priced, account, WRITE, Largest(0.4, 1200), heir)
    assert Call.objects.get(pk=lost).outcome == Outcome.LOST
    assert Call.objects.get(pk=other).is_open
    assert spending.of_run(1).lost == 1


def test_reservations_of_claims_nobody_holds_are_released(priced: LanguageModel) -> None:
    living, dead = uuid.uuid4(), uuid.uuid4()
    kept = accounts.reserve(priced, Account(1, None), WRITE, Largest(0.4, 1200), living)
    gone = accounts.reserve(priced, Account(2, None), WRITE, Largest(0.4, 1200), dead)
    assert accounts.open_claims() == {living, dead}
    assert accounts.release_lost({living}) == 1
    assert Call.objects.get(pk=kept).is_open
    assert Call.objects.get(pk=gone).counted_usd == 0


def test_what_can_not_be_on_its_way_any_more_counts_no_more(
    priced: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = Account(1, None, run_limit_usd=Decimal("0.50"))
    old = accounts.reserve(priced, account, WRITE, Largest(0.4, 1200))
    later = timezone.now() + timedelta(minutes=10)
    monkeypatch.setattr(accounts.timezone, "now", lambda: later)
    accounts.reserve(priced, account, WRITE, Largest(0.4, 1200))
    assert accounts.release_lost(()) == 1
    assert Call.objects.get(pk=old).outcome == Outcome.LOST


def test_a_call_given_up_that_comes_back_costs_what_it_did(priced: LanguageModel) -> None:
    account = Account(1, None, run_limit_usd=Decimal("0.50"))
    slow = accounts.reserve(priced, account, WRITE, Largest(0.4, 1200), uuid.uuid4())
    accounts.release_lost(())
    accounts.settle(slow, made(0.3))
    with pytest.raises(OverLimit, match=r"leaves \$0\.2000"):
        accounts.reserve(priced, account, WRITE, Largest(0.4, 1200))


def test_a_month_is_one_of_utc(priced: LanguageModel, person: Person, clock: list[datetime]) -> None:
    PersonLimit.objects.create(person=person, month_usd=1)
    account = Account(1, person.pk, "Ada")
    accounts.settle(accounts.reserve(priced, account, WRITE, Largest(0.9, 1200)), made(0.9))
    with pytest.raises(OverLimit, match=r"Ada's limit for November 2026 \(UTC\) of \$1\.00 leaves \$0\.1000"):
        accounts.reserve(priced, account, WRITE, Largest(0.9, 1200))
    clock[0] = datetime(2026, 12, 1, 0, 0, tzinfo=UTC)
    accounts.reserve(priced, account, WRITE, Largest(0.9, 1200))
    assert [call.month.month for call in Call.objects.all()] == [11, 12]


def test_an_own_limit_stands_in_place_of_everyones(priced: LanguageModel, person: Person, admin: Person) -> None:
    Limits.objects.create(pk=1, person_month_usd=1)
    PersonLimit.objects.create(person=person, month_usd=2)
    accounts.reserve(priced, Account(1, person.pk, "Ada"), WRITE, Largest(1.5, 1200))
    with pytest.raises(OverLimit):
        accounts.reserve(priced, Account(2, admin.pk, "root"), WRITE, Largest(1.5, 1200))


def test_the_teams_limit_for_a_run_holds_for_one_launched_with_more(priced: LanguageModel) -> None:
    Limits.objects.create(pk=1, run_usd=1)
    with pytest.raises(OverLimit, match="The team's limit for one run of"):
        accounts.reserve(priced, Account(1, None, run_limit_usd=Decimal(50)), WRITE, Largest(1.5, 1200))


def test_an_unknown_price_is_never_nothing(priced: LanguageModel) -> None:
    number = accounts.reserve(priced, Account(1, None), WRITE, Largest(None, 1200))
    accounts.settle(number, made(None))
    spent = spending.of_run(1)
    assert Call.objects.get(pk=number).cost_usd is None
    assert (spent.unpriced, spent.usd) == (1, 0)
    with pytest.raises(OverLimit, match="the price of m is unknown"):
        accounts.reserve(priced, Account(1, None, run_limit_usd=Decimal(5)), WRITE, Largest(None, 1200))


def test_a_free_model_may_be_called_when_nothing_is_left(priced: LanguageModel) -> None:
    account = Account(1, None, run_limit_usd=Decimal(0))
    accounts.reserve(priced, account, WRITE, Largest(0.0, 1200))
    with pytest.raises(OverLimit):
        accounts.reserve(priced, account, WRITE, Largest(0.001, 1200))


def test_tokens_are_set_aside_and_what_was_not_taken_can_be_taken_again(priced: LanguageModel) -> None:
    account = Account(1, None, run_limit_tokens=3000)
    first = accounts.reserve(priced, account, WRITE, Largest(0.1, 2000))
    with pytest.raises(
        OverLimit, match=r"limit of 3,000 tokens leaves 1,000, and this call of m could take 2,000"
    ) as over:
        accounts.reserve(priced, account, WRITE, Largest(0.1, 2000))
    assert over.value.may_pass
    accounts.settle(first, made())  # 1,200 of them
    with pytest.raises(OverLimit, match=r"leaves 1,800, and this call of m could take 2,000") as over:
        accounts.reserve(priced, account, WRITE, Largest(0.1, 2000))
    assert not over.value.may_pass
    second = accounts.reserve(priced, account, WRITE, Largest(0.1, 1800))
    call = Call.objects.get(pk=second)
    assert (call.reserved_tokens, call.counted_tokens) == (1800, 1800)


def test_tokens_of_a_worker_that_died_are_free_again(priced: LanguageModel) -> None:
    account = Account(1, None, run_limit_tokens=3000)
    accounts.reserve(priced, account, WRITE, Largest(0.1, 2000), uuid.uuid4())
    accounts.reserve(priced, account, WRITE, Largest(0.1, 3000), uuid.uuid4())


def test_a_price_nobody_knows_does_not_keep_tokens_from_being_limited(priced: LanguageModel) -> None:
    with pytest.raises(OverLimit, match="leaves 500"):
        accounts.reserve(priced, Account(1, None, run_limit_tokens=500), WRITE, Largest(None, 501))
    accounts.reserve(priced, Account(1, None, run_limit_tokens=500), WRITE, Largest(None, 500))


def test_only_what_the_runs_own_calls_set_aside_is_worth_waiting_for(priced: LanguageModel, person: Person) -> None:
    PersonLimit.objects.create(person=person, month_usd=1)
    accounts.reserve(priced, Account(1, person.pk, "Ada"), WRITE, Largest(0.9, 1200))
    with pytest.raises(OverLimit) as of_another:
        accounts.reserve(priced, Account(2, person.pk, "Ada"), WRITE, Largest(0.5, 1200))
    with pytest.raises(OverLimit) as of_its_own:
        accounts.reserve(priced, Account(1, person.pk, "Ada"), WRITE, Largest(0.5, 1200))
    assert (of_another.value.may_pass, of_its_own.value.may_pass) == (False, True)
