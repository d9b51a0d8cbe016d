"""Kill the worker before, within and after each transaction of its journal: rows and events come out as undisturbed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import connection

from apps.agents.facts import Fact
from apps.agents.words import CannotWrite, Orders, Seed
from apps.runs import claims, recorder
from apps.runs.beat import Hold
from apps.runs.journal import RunJournal
from apps.runs.models import AdviceRow, Draft, Event, Hint, JournalEntry, Measurement, Run, RunState, Version
from apps.runs.recorder import Recorder
from tests.agents.doubles import Killed, World, an_assignment
from tests.runs.scripted import Worker, silence

pytestmark = pytest.mark.django_db(transaction=True)
MakeRun = Callable[..., Run]
ENDED_COLUMNS = [
    "state", "reason", "best__number", "result__number", "speedup", "speedup_low", "tokens_in", "tokens_out", "cost_usd",
    "cost_unknown", "outcome", "iteration", "doing", "fruitless", "claim",
]  # fmt: skip
WHERE = ["before", "within", "after"]


def eventful() -> World:
    """Seeds, a repair, a refusal, a duplicate, hints, a device that comes back."""
    return World(
        {
            (1, 0): "build_failed", (1, 1): "correct 1.5",
            (2, 0): "correct 1.5", (2, 1): "correct 1.9",
            (3, 0): CannotWrite("no such move"), (3, 1): "correct 2.5",
        },
        repairs={(1, 0, 1): "correct 1.2"},
        lost_once={"correct 1.9"},
    )  # fmt: skip


def assignment() -> Any:
    return an_assignment(iterations=3, candidates=2, seeds=(Seed("correct 1.1", "ann"),))


class MortalJournal(RunJournal):
    """Dies at its n-th transaction, in the place that is named."""

    def __init__(self, hold: Hold, recorder: Recorder, dies_at: int, where: str) -> None:
        super().__init__(hold, recorder)
        self._left, self._where = dies_at, where

    def _write(self, write: Callable[[], None]) -> None:
        self._left -= 1
        if self._left >= 0:
            return super()._write(write)
        if self._where == "before":
            raise Killed
        if self._where == "within":

            def broken() -> None:
                write()
                raise Killed

            return super()._write(broken)
        super()._write(write)
        raise Killed


class CountingJournal(RunJournal):
    """Counts its transactions."""

    count = 0

    def _write(self, write: Callable[[], None]) -> None:
        type(self).count += 1
        super()._write(write)


def rows(run: Run) -> dict[str, Any]:
    """Everything that is recorded of a run, numbers and keys aside."""
    run.refresh_from_db()
    versions = Version.objects.filter(run=run).select_related("parent", "measurement")
    return {
        "versions": [
            (
                v.number,
                v.parent and v.parent.number,
                v.iteration,
                v.slot,
                v.repair,
                v.author,
                v.advice,
                v.source,
                v.plan,
            )
            for v in versions
        ],
        "shown": [(v.number, v.measurement and (v.measurement.purpose, v.measurement.verdict)) for v in versions],
        "measurements": list(
            Measurement.objects.filter(version__run=run)
            .order_by("version__number", "pk")
            .values_list("version__number", "purpose", "tier", "verdict", "speedup")
        ),
        "advices": list(AdviceRow.objects.filter(run=run).values_list("number", "held")),
        "journal": list(JournalEntry.objects.filter(run=run).values_list("position", "key", "inputs")),
        "run": Run.objects.filter(pk=run.pk).values(*ENDED_COLUMNS).get(),
        "events": without_repeated_beginnings(run),
        "hints": list(Hint.objects.filter(run=run).values_list("text", "taken")),
        "drafts": Draft.objects.filter(run=run).count(),
    }


def without_repeated_beginnings(run: Run) -> list[tuple[str, str, str]]:
    """The events that tell of the work; a step in flight when its worker died is begun twice, and only then."""
    kept: list[tuple[str, str, str]] = []
    for event in Event.objects.filter(run=run).exclude(kind__in=["claimed", "lost"]).order_by("seq"):
        told = (event.kind, event.step, event.text)
        if not (event.kind == "step_began" and kept and kept[-1] == told):
            kept.append(told)
    return kept


def test_killed_anywhere_a_run_comes_out_the_same(make_run: MakeRun) -> None:
    undisturbed = make_run()
    Hint.objects.create(run=undisturbed, text="try tiles")
    CountingJournal.count = 0
    calm = eventful()
    Worker(undisturbed, calm, assignment()).work(journal=CountingJournal)
    expected = rows(undisturbed)
    assert expected["run"]["state"] == RunState.FINISHED
    assert len(expected["versions"]) >= 5
    assert expected["hints"] == [("try tiles", True)]
    assert expected["drafts"] == 0

    transactions = CountingJournal.count
    assert transactions > 40
    # Steps of 2 and of 8 are prime to the three places, so that each of them gets its turn.
    for dies_at in range(0, transactions, 2 if connection.vendor == "sqlite" else 8):
        where = WHERE[dies_at % 3]
        run, world = make_run(), eventful()
        Hint.objects.create(run=run, text="try tiles")
        worker = Worker(run, world, assignment())
        with pytest.raises(Killed):
            worker.work(journal=MortalJournal, dies_at=dies_at, where=where)  # type: ignore[arg-type]
        if not Run.objects.get(pk=run.pk).is_live:
            assert rows(run) == expected
            continue
        silence(run)
        worker.work()
        assert rows(run) == expected, f"killed {where} transaction {dies_at}"
        assert len(world.work) - len(calm.work) in (0, 1)
        numbers = list(Event.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("broken", ["_version_kept", "_step_ended", "_best_changed", "_run_ended"])
def test_a_recorder_that_breaks_leaves_nothing_half_written(
    make_run: MakeRun, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, world = make_run(iterations=1), World({(1, 0): "correct 1.5"})
    worker = Worker(run, world, an_assignment(iterations=1))
    original = Recorder.record

    def record(self: Recorder, step: str, facts: Sequence[Fact]) -> None:
        original(self, step, facts)
        names = {"".join(f"_{c.lower()}" if c.isupper() else c for c in type(fact).__name__) for fact in facts}
        if broken in names:
            raise RuntimeError("the recorder broke")

    with monkeypatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr(recorder.Recorder, "record", record)
        worker.work()
    journalled = set(JournalEntry.objects.filter(run=run).values_list("key", flat=True))
    told = set(Event.objects.filter(run=run).exclude(kind__in=["step_began", "claimed"]).values_list("step", flat=True))
    assert told <= journalled
    silence(run)
    worker.work()
    run.refresh_from_db()
    assert run.state == RunState.FINISHED


def test_changed_inputs_end_the_replay_and_what_came_after_is_numbered_anew(make_run: MakeRun) -> None:
    run = make_run()
    world = World({(1, 0): "correct 1.5", (2, 0): "correct 2.0", (3, 0): "correct 2.5"}, hints=["be quick"])
    Hint.objects.create(run=run, text="be quick")
    worker = Worker(run, world, an_assignment(iterations=3))
    keys: list[str] = []

    class DiesInThirdIteration(RunJournal):
        def _commit(self, entry: JournalEntry, facts: Sequence[Fact]) -> None:
            if entry.key.startswith("3.0.verify"):
                raise Killed
            keys.append(entry.key)
            super()._commit(entry, facts)

    with pytest.raises(Killed):
        worker.work(journal=DiesInThirdIteration)
    assert Version.objects.filter(run=run).count() == 2
    JournalEntry.objects.filter(run=run, key="2.0.write.0").update(inputs="of another program")
    silence(run)
    ended = worker.work()

    assert ended.result == 3
    replay = Event.objects.get(run=run, kind="replay_ended")
    assert (replay.step, replay.data) == ("2.0.write.0", {"versions_from": 2, "advices_from": 2})
    assert list(Version.objects.filter(run=run).values_list("number", "iteration")) == [(1, 1), (2, 2), (3, 3)]
    entries = list(JournalEntry.objects.filter(run=run).values_list("position", flat=True))
    assert entries == list(range(len(entries)))
    assert list(AdviceRow.objects.filter(run=run).values_list("number", flat=True)) == [1, 2]


def test_orders_given_while_no_worker_lives_are_heeded_by_the_next(make_run: MakeRun, person: Any) -> None:
    from apps.runs import steering

    run, world = make_run(), World({(n, 0): f"correct {1 + n / 10}" for n in range(1, 9)})
    worker = Worker(run, world, an_assignment(iterations=3))
    with pytest.raises(Killed):
        worker.work(journal=MortalJournal, dies_at=12, where="after")  # type: ignore[arg-type]
    steering.hint(run, person, "think of caches")
    steering.change_limits(run, person, steering.Limits(iterations=2))
    silence(run)
    worker.work()
    run.refresh_from_db()
    assert run.state == RunState.FINISHED
    assert run.iteration == 2
    assert any("think of caches" in brief.history.hints for brief in world.briefs)
    assert Hint.objects.get(run=run).taken


def test_a_stop_keeps_the_best_and_judges_it_in_full(make_run: MakeRun, person: Any) -> None:
    from apps.runs import steering

    run = make_run(iterations=8)
    world = World({(n, 0): f"correct {1 + n / 10}" for n in range(1, 9)})
    worker = Worker(run, world, an_assignment(iterations=8, plateau=9))
    with pytest.raises(Killed):
        worker.work(journal=MortalJournal, dies_at=14, where="after")  # type: ignore[arg-type]
    steering.stop(run, person)
    silence(run)
    ended = worker.work()
    run.refresh_from_db()
    assert run.state == RunState.STOPPED
    assert ended.result is not None and run.result is not None
    assert run.result.measurement is not None and run.result.measurement.tier == "full"
    assert "Stopped by Ada Moss." in run.reason
    assert claims.take(run.pk) is None


def test_text_that_databases_refuse_is_kept_without_it(make_run: MakeRun) -> None:
    run = make_run(iterations=1)
    source = "correct 1.5 # \x00 and half a pair \ud800"
    ended = Worker(run, World({(1, 0): source}), an_assignment(iterations=1)).work()
    kept = Version.objects.get(run=run)
    assert ended.result == kept.number
    assert kept.source.startswith("correct 1.5 # ")
    assert "\x00" not in kept.source


def test_orders_are_read_with_orders(make_run: MakeRun) -> None:
    """A pinned limit that nobody changed is not repeated as an order."""
    from apps.runs.beat import beat
    from apps.runs.control import RunControl
    from tests.runs.scripted import take

    run = make_run(seconds_limit=5.0)
    with beat.holding(take(run)) as hold:
        control = RunControl(hold, an_assignment(iterations=3, seconds=5.0))
        assert control.read("write") == Orders()
        Run.objects.filter(pk=run.pk).update(seconds_limit=9.0)
        assert control.read("write") == Orders(seconds=9.0)
