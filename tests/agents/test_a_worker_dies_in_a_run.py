"""Kill the worker at each possible point; its successor tells what an undisturbed run would have, and pays once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.agents.facts import Fact, ReplayEnded, StepBegan
from apps.agents.journal import MemoryJournal, from_transcript, to_transcript
from apps.agents.words import Assignment, CannotWrite, Orders, Seed
from tests.agents.doubles import Killed, MortalJournal, World, an_assignment


def eventful() -> World:
    """A run in which everything happens: seeds, repairs, a duplicate, a refusal, hints, rivals, real headers, a loss."""
    inline = "correct 1.9 # load_inline"
    return World(
        {
            (1, 0): "build_failed", (1, 1): "correct 1.5",
            (2, 0): "correct 1.5", (2, 1): inline,
            (3, 0): CannotWrite("no such move"), (3, 1): "correct 1.88 # other",
            (4, 0): "rejected", (4, 1): "lost",
        },
        repairs={(1, 0, 1): "incorrect # 1", (1, 0, 2): "correct 1.4", (4, 0, 1): CannotWrite("it would cheat again")},
        full={inline: "incorrect # in full"},
        lost_once={"correct 1.5"},
        hints=["try tiles"],
        orders={"write": [Orders(), Orders(iterations=4)]},
    )  # fmt: skip


def assignment() -> Assignment:
    seeds = (Seed("correct 1.1", "ann"),)
    return an_assignment(iterations=3, candidates=2, seeds=seeds, seconds=10_000.0, money_usd=100.0)


def without_repeated_beginnings(facts: list[Fact]) -> list[Fact]:
    """The facts, with the beginning of a step that was in flight when its worker died told once."""
    kept: list[Fact] = []
    for fact in facts:
        if not (isinstance(fact, StepBegan) and kept and kept[-1] == fact):
            kept.append(fact)
    return kept


UNDISTURBED = eventful()
ENDED = UNDISTURBED.run(assignment(), JOURNAL := MemoryJournal(UNDISTURBED.listener()))


def test_the_undisturbed_run_is_as_eventful_as_meant() -> None:
    assert ENDED.result is not None and "the host is lost" in ENDED.reason
    assert len({record.key for record in JOURNAL.records}) == len(JOURNAL.records) > 40
    assert all(len(record.key) <= 60 for record in JOURNAL.records)


@pytest.mark.parametrize("recorded", [True, False], ids=["after the commit", "before the commit"])
@pytest.mark.parametrize("dies_at", range(len(JOURNAL.records)))
def test_a_run_killed_at_any_step_resumes_as_if_nothing_had_happened(dies_at: int, recorded: bool) -> None:
    world = eventful()
    mortal = MortalJournal(world.listener(), (), dies_at, recorded=recorded)
    with pytest.raises(Killed):
        world.run(assignment(), mortal)
    heir = MemoryJournal(world.listener(), mortal.records)
    if not recorded:
        world.orders = eventful_orders_left(mortal)
    ended = world.run(assignment(), heir)

    assert ended == ENDED
    assert without_repeated_beginnings(world.facts) == UNDISTURBED.facts
    assert same_but_for_the_clock(heir, JOURNAL)
    repeated = len(world.work) - len(UNDISTURBED.work)
    assert repeated == 0 if recorded else repeated in (0, 1)


def eventful_orders_left(journal: MemoryJournal) -> dict[str, list[Orders]]:
    """Orders stay in the database until their reading is journalled."""
    read = sum("orders-write" in record.key for record in journal.records)
    return {"write": [Orders(), Orders(iterations=4)][read:]}


def same_but_for_the_clock(one: MemoryJournal, other: MemoryJournal) -> bool:
    pairs = zip(one.records, other.records, strict=True)
    return all(a == b or ("orders-" in a.key and (a.key, a.inputs) == (b.key, b.inputs)) for a, b in pairs)


def test_a_worker_killed_twice() -> None:
    world = eventful()
    first = MortalJournal(world.listener(), (), 12, recorded=True)
    with pytest.raises(Killed):
        world.run(assignment(), first)
    second = MortalJournal(world.listener(), first.records, 9, recorded=True)
    with pytest.raises(Killed):
        world.run(assignment(), second)
    assert world.run(assignment(), MemoryJournal(world.listener(), second.records)) == ENDED
    assert world.facts == UNDISTURBED.facts


def test_a_run_that_is_over_tells_and_does_nothing_when_it_is_resumed() -> None:
    world = eventful()
    assert world.run(assignment(), MemoryJournal(world.listener(), JOURNAL.records)) == ENDED
    assert world.facts == [] and world.work == []


def test_a_finished_run_is_shown_again_from_its_transcript_without_coder_or_device() -> None:
    world = eventful()
    records = from_transcript(to_transcript(JOURNAL.records))
    assert world.run(assignment(), MemoryJournal(world.listener(), records, retell=True)) == ENDED
    assert world.facts == UNDISTURBED.facts and world.work == []


def test_a_broken_transcript_names_the_line() -> None:
    text = to_transcript(JOURNAL.records[:2]) + '{"key": 1}\n'
    with pytest.raises(ValueError, match="line 3"):
        from_transcript(text)


def test_where_a_steps_inputs_changed_the_replay_ends_is_said_so_and_all_is_done_anew() -> None:
    world = eventful()
    world.run(assignment(), journal := MemoryJournal(world.listener()))
    heir = World(dict(world.writes), repairs=dict(world.repairs), orders={"write": [Orders(), Orders(iterations=4)]})
    records = [
        record if record.key != "2.1.write.0" else replace(record, inputs="0" * 64) for record in journal.records
    ]
    heir.run(assignment(), MemoryJournal(heir.listener(), records))
    assert heir.facts[0] == ReplayEnded("2.1.write.0")
    assert isinstance(heir.facts[1], StepBegan) and heir.facts[1].step == "2.1.write.0"
    assert heir.work[0] == "write 2.1"
