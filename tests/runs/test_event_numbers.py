"""Events are numbered by one within a run, and nobody ever sees a later one before an earlier one."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

from apps.runs import events
from apps.runs.events import Entry
from apps.runs.models import Event, Run
from tests.patience import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)
MakeRun = Callable[..., Run]
WRITERS, BATCHES, BATCH = 5, 20, 3


def test_many_writers_leave_neither_gap_nor_double_and_a_reader_sees_them_in_order(make_run: MakeRun) -> None:
    run, failures, done = make_run(), [], threading.Event()
    seen: list[int] = []

    def write(writer: int) -> None:
        try:
            for batch in range(BATCHES):
                events.append(run.pk, [Entry("log", f"{writer}.{batch}.{place}") for place in range(BATCH)])
        except Exception as problem:
            failures.append(problem)
        finally:
            connection.close()

    def read() -> None:
        try:
            while len(seen) < WRITERS * BATCHES * BATCH and not failures:
                after = seen[-1] if seen else 0
                news = Event.objects.filter(run=run, seq__gt=after).order_by("seq").values_list("seq", flat=True)
                seen.extend(news)
                done.wait(0.002)
        finally:
            connection.close()

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in [reader, *writers]:
        thread.start()
    for thread in [*writers, reader]:
        thread.join(PATIENCE)

    assert failures == []
    assert seen == list(range(1, WRITERS * BATCHES * BATCH + 1))
    for writer in range(WRITERS):
        mine = (
            Event.objects.filter(run=run, text__startswith=f"{writer}.").order_by("seq").values_list("text", flat=True)
        )
        assert list(mine) == [f"{writer}.{batch}.{place}" for batch in range(BATCHES) for place in range(BATCH)]


def test_a_transaction_that_fails_takes_its_numbers_back(make_run: MakeRun) -> None:
    run = make_run()
    events.append(run.pk, [Entry("log", "one")])
    with pytest.raises(RuntimeError), transaction.atomic():
        events.append(run.pk, [Entry("log", "never was")])
        raise RuntimeError
    assert events.append(run.pk, [Entry("log", "two")]) == 2
    assert list(Event.objects.filter(run=run).values_list("seq", "text")) == [(1, "one"), (2, "two")]


def test_runs_are_numbered_each_for_itself(make_run: MakeRun) -> None:
    one, other = make_run(), make_run()
    events.append(one.pk, [Entry("log", "a"), Entry("log", "b")])
    assert events.append(other.pk, [Entry("log", "a")]) == 1
