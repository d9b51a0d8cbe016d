"""What a browser gets over the websocket: everything once and in order, and nothing it may not see."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import transaction
from django.utils import timezone

from apps.hosts.models import Host
from apps.people.models import Person
from apps.runs import events
from apps.runs.events import Entry
from apps.runs.live import consumers, reading, subscription
from apps.runs.live.tailer import tailer
from apps.runs.models import Draft, Event, Run, RunState
from tests.patience import PATIENCE
from tests.runs.sockets import Refused, browser, cookie_of

pytestmark = pytest.mark.django_db(transaction=True)
MakeRun = Callable[..., Run]


@pytest_asyncio.fixture(autouse=True)
async def closed_tailer() -> AsyncIterator[None]:
    yield
    await tailer().close()


@sync_to_async
def say(run: Run, *texts: str, kind: str = "log", step: str = "") -> int:
    return events.append(run.pk, [Entry(kind, text, step=step) for text in texts])


@sync_to_async
def draft(run: Run, step: str, text: str) -> None:
    Draft.objects.update_or_create(run=run, step=step, defaults={"agent": "coder", "iteration": 1, "text": text})


@sync_to_async
def end_step(run: Run, step: str, text: str) -> None:
    with transaction.atomic():
        Draft.objects.filter(run=run, step=step).delete()
        events.append(run.pk, [Entry("step_ended", "done", step=step, data={"text": text})])


async def test_first_what_was_missed_then_open_drafts_then_what_is_new(make_run: MakeRun, person: Person) -> None:
    run = await sync_to_async(make_run)(state=RunState.RUNNING)
    await say(run, "one", "two", "three")
    await draft(run, "1.0.write.0", "I think")
    async with browser(f"/ws/runs/{run.pk}?after=1", person) as page:
        ready = await page.until("ready")
        assert [message["type"] for message in page.messages] == ["status", "events", "draft", "ready"]
        assert (page.numbers, ready["seq"]) == ([2, 3], 3)
        assert page.drafts == {"1.0.write.0": "I think"}
        assert page.status["state"] == "running"
        await say(run, "four")
        await page.until_event(4)
        assert page.events[-1]["text"] == "four"
        assert page.numbers == [2, 3, 4]


async def test_streaming_text_comes_with_its_place_and_ends_with_its_event(make_run: MakeRun, person: Person) -> None:
    run = await sync_to_async(make_run)(state=RunState.RUNNING)
    step = "1.0.write.0"
    async with browser(f"/ws/runs/{run.pk}", person) as page:
        await page.until("ready")
        for text in ["a 🚀", "a 🚀 b", "a 🚀 b 🚀 c"]:
            await draft(run, step, text)
            await page.until("draft")
            assert page.drafts[step] == text
        assert [m["offset"] for m in page.messages if m["type"] == "draft"] == [0, 4, 6]
        await draft(run, step, "a 🚀 X")
        await page.until("draft")
        assert page.drafts[step] == "a 🚀 X"
        await end_step(run, step, "the whole text")
        await page.until("draft_end")
        assert page.events[-1]["data"]["text"] == "the whole text"
        assert page.drafts == {}


async def test_a_long_log_is_replayed_whole_while_it_grows(make_run: MakeRun, person: Person) -> None:
    run = await sync_to_async(make_run)(state=RunState.RUNNING)
    await say(run, *[f"line {n}" for n in range(1, 1801)])

    async def grow() -> None:
        for n in range(60):
            await say(run, f"more {n}")

    growing = asyncio.create_task(grow())
    async with browser(f"/ws/runs/{run.pk}", person) as page:
        await page.until_event(1860)
        await growing
    assert page.numbers == list(range(1, 1861))
    assert max(len(m["events"]) for m in page.messages if m["type"] == "events") <= 500


async def test_reconnecting_again_and_again_leaves_neither_gap_nor_double(make_run: MakeRun, person: Person) -> None:
    run = await sync_to_async(make_run)(state=RunState.RUNNING)
    numbers: list[int] = []

    async def grow() -> None:
        for n in range(120):
            await say(run, f"line {n}")

    growing = asyncio.create_task(grow())
    while not numbers or numbers[-1] < 120:
        async with browser(f"/ws/runs/{run.pk}?after={numbers[-1] if numbers else 0}", person) as page:
            await page.until("events")
            numbers += page.numbers
    await growing
    assert numbers == list(range(1, 121))


async def test_many_pages_of_one_run_get_the_same(make_run: MakeRun, person: Person) -> None:
    run = await sync_to_async(make_run)(state=RunState.RUNNING)
    cookie = await sync_to_async(cookie_of)(person)

    async def watch() -> list[int]:
        async with browser(f"/ws/runs/{run.pk}", cookie=cookie) as page:
            await page.until_event(30)
            return page.numbers

    watching = [asyncio.create_task(watch()) for _ in range(12)]
    for n in range(30):
        await say(run, f"line {n}")
    assert await asyncio.gather(*watching) == [list(range(1, 31))] * 12


async def test_a_number_from_another_database_starts_the_page_anew(make_run: MakeRun, person: Person) -> None:
    run = await sync_to_async(make_run)()
    await say(run, "one")
    async with browser(f"/ws/runs/{run.pk}?after=77", person) as page:
        await page.until("ready")
        assert [message["type"] for message in page.messages] == ["status", "reset", "events", "ready"]
        assert page.numbers == [1]


async def test_the_status_follows_the_row_and_time(
    make_run: MakeRun, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.runs.live.tailer._LOOK_ANYWAY", 0.2)
    clock = SimpleNamespace(now=timezone.now)
    monkeypatch.setattr(reading, "timezone", clock)
    later = timezone.now() + timedelta(hours=1)
    run = await sync_to_async(make_run)(state=RunState.RUNNING, claim_expires_at=later)
    async with browser(f"/ws/runs/{run.pk}", person) as page:
        await page.until("ready")
        assert page.status["lost"] is False
        await Run.objects.filter(pk=run.pk).aupdate(doing="Checking v1", iteration=1)
        await page.until("status")
        assert (page.status["doing"], page.status["iteration"], page.status["lost"]) == ("Checking v1", 1, False)
        clock.now = lambda: later + timedelta(seconds=1)
        await page.until("status")
        assert page.status["lost"] is True


async def test_commands_over_the_socket(make_run: MakeRun, person: Person) -> None:
    run = await sync_to_async(make_run)(state=RunState.RUNNING)
    async with browser(f"/ws/runs/{run.pk}", person) as page:
        await page.until("ready")
        await page.send(type="hint", text="try tiles")
        assert (await page.until("done"))["command"] == "hint"
        await page.send(type="hint", text="")
        assert "needs some text" in (await page.until("refused"))["message"]
        await page.send(type="stop")
        await page.until("done")
        await page.send(type="pause")
        assert "stopping" in (await page.until("refused"))["message"]
        await page.send(type="dance")
        await page.until("refused")
        await page.socket.send_text("{")
        await page.until("refused")
    kinds = [event.kind async for event in Event.objects.filter(run=run).order_by("seq")]
    assert kinds == ["hint_given", "stop_asked"]


async def test_who_is_not_signed_in_is_told_so(make_run: MakeRun) -> None:
    run = await sync_to_async(make_run)()
    for path in [f"/ws/runs/{run.pk}", "/ws/runs"]:
        async with browser(path) as page:
            assert await page.close_code() == consumers.SIGNED_OUT


async def test_who_signs_out_or_is_disabled_sees_nothing_more(
    make_run: MakeRun, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumers, "_PERSON_FRESH_FOR", 0.0)
    run = await sync_to_async(make_run)()
    async with browser(f"/ws/runs/{run.pk}", person) as page:
        await page.until("ready")
        await Person.objects.filter(pk=person.pk).aupdate(is_active=False)
        await say(run, "secret")
        assert await page.close_code() == consumers.SIGNED_OUT


async def test_a_run_that_is_not_there_is_said_to_be_not_there(person: Person) -> None:
    async with browser("/ws/runs/4711", person) as page:
        assert await page.close_code() == consumers.NO_SUCH_RUN


async def test_pages_of_other_sites_get_no_socket(make_run: MakeRun, person: Person) -> None:
    run = await sync_to_async(make_run)()
    with pytest.raises(Refused):
        async with browser(f"/ws/runs/{run.pk}", person, origin="https://evil.example"):
            pass


async def test_who_reads_too_slowly_is_cut_off(
    make_run: MakeRun, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await sync_to_async(make_run)()
    queue = subscription.Subscription(capacity=2)
    queue.offer("1")
    queue.offer("2")
    queue.offer("3")
    with pytest.raises(subscription.TooSlow):
        await queue.next()
    made: list[subscription.Subscription] = []
    reads_on = asyncio.Event()

    class Narrow(subscription.Subscription):
        def __init__(self) -> None:
            super().__init__(capacity=1)
            made.append(self)

    async def stuck(self: Any, *args: Any, **kwargs: Any) -> None:
        await reads_on.wait()
        await consumers.AsyncWebsocketConsumer.send(self, *args, **kwargs)

    monkeypatch.setattr(consumers, "Subscription", Narrow)
    monkeypatch.setattr(consumers.RunSocket, "send", stuck)
    async with browser(f"/ws/runs/{run.pk}", person) as page:
        async with asyncio.timeout(PATIENCE):
            while not (made and made[0]._overflowed):
                await say(run, "another line")
        reads_on.set()
        assert await page.close_code() == consumers.SLOW


async def test_the_lists_hear_which_rows_changed(make_run: MakeRun, person: Person, host: Host) -> None:
    run = await sync_to_async(make_run)(state=RunState.RUNNING)
    async with browser("/ws/runs", person) as page:
        assert await page.next() == {"type": "changed", "runs": [], "hosts": []}
        await Run.objects.filter(pk=run.pk).aupdate(iteration=2)
        changed = await page.next()
        assert [(row["id"], row["iteration"]) for row in changed["runs"]] == [(run.pk, 2)]
        assert changed["hosts"] == []
        await Host.objects.filter(pk=host.pk).aupdate(enabled=False)
        assert (await page.next())["hosts"] == ["here"]
        new = await sync_to_async(make_run)()
        assert [row["id"] for row in (await page.next())["runs"]] == [new.pk]


async def test_the_lists_tell_all_that_changes_after_their_first_message(
    make_run: MakeRun, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On that message a page reads its list: what changes from then on is compared with what was read before."""
    run = await sync_to_async(make_run)(state=RunState.RUNNING)
    lists, read = reading.lists, []

    def slowly(*args: Any, **kwargs: Any) -> reading.Lists:
        time.sleep(0.3)
        read.append(lists(*args, **kwargs))
        return read[-1]

    monkeypatch.setattr(reading, "lists", slowly)
    async with browser("/ws/runs", person) as page:
        await page.next()
        assert len(read) == 1
        await Run.objects.filter(pk=run.pk).aupdate(iteration=2)
        assert [row["id"] for row in (await page.next())["runs"]] == [run.pk]


async def test_who_comes_while_the_lists_are_read_is_told_all_the_same(
    person: Person, admin: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.runs.live.tailer._LOOK_ANYWAY", 10 * PATIENCE)
    begun, going = threading.Event(), threading.Event()
    changed = reading.Versions.changed

    def held(versions: reading.Versions) -> bool:
        begun.set()
        going.wait(PATIENCE)
        return changed(versions)

    monkeypatch.setattr(reading.Versions, "changed", held)
    async with browser("/ws/notices", person) as page:
        assert await asyncio.to_thread(begun.wait, PATIENCE)
        async with browser("/ws/notices", admin) as other:
            async with asyncio.timeout(PATIENCE):
                while admin.pk not in tailer()._people:
                    await asyncio.sleep(0.01)
            going.set()
            assert (await page.until("notices"))["unread"] == 0
            assert (await other.until("notices"))["unread"] == 0
