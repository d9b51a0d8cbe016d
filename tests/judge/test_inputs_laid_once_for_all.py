"""Inputs far larger than all caches: laid once a round for all who are called on them, mixed straight to where they lie."""

from __future__ import annotations

import mmap
from collections.abc import Iterator

import pytest

from apps.kernels.evaluation import EvaluationRequest
from apps.kernels.jail import Zygote
from apps.kernels.judge import timing
from apps.kernels.judge.runner import Options
from apps.kernels.judge.session import Session
from apps.kernels.selftest.corpus import entries

from .conftest import Judge

pytestmark = pytest.mark.judge
(HONEST,) = entries(("honest/house_style",))
PLACES = Options(role="empty", regions=1, ways=16)


@pytest.fixture
def session(zygote: Zygote) -> Iterator[Session]:
    problem = HONEST.problem_source
    request = EvaluationRequest(problem, HONEST.source, profile=False)
    with Session(request, problem, zygote, lambda _progress: None) as opened:
        opened.oracle.draw(0)
        opened.oracle.set_state()
        opened.contents.draw_all()
        yield opened


@pytest.mark.parametrize("lent", [True, False])
def test_what_lies_in_the_arena_is_what_the_oracle_is_asked(session: Session, lent: bool) -> None:
    arena = session.timed_arena(PLACES, lent=lent)
    try:
        assert session.comparer.has_lent(arena.memory) == lent
        for row in arena.places.rows[:3]:
            recipe = session.contents.new()
            session.contents.lay([recipe], arena.memory, [row])
            session.contents.ask(recipe)
            asked = session.oracle.slot(session.oracle.slots)
            for spec, place, at in zip(session.oracle.problem.inputs, row, asked, strict=True):
                assert (
                    arena.memory.view[place.at : place.at + spec.bytes]
                    == session.oracle.bank.view[at : at + spec.bytes]
                )
        with pytest.raises(PermissionError):
            mmap.mmap(arena.memory.fd, arena.memory.size)
    finally:
        arena.close()


def test_a_second_group_lies_in_the_same_memory_and_another_size_in_its_own(session: Session) -> None:
    first, second = (session.timed_arena(PLACES, lent=True) for _ in range(2))
    other = session.timed_arena(Options(role="empty", regions=2, ways=8), lent=True)
    try:
        assert first.memory is second.memory
        first.close()
        second.memory.view[0] = 1  # it goes on
        assert not session.comparer.has_lent(other.memory)
    finally:
        other.close()


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("honest/house_style", "correct"),
        ("two_faced/when_memory_is_guarded", "incorrect"),
        ("two_faced/honest_for_twenty_calls", "incorrect"),
    ],
)
def test_a_judgement_of_large_inputs(name: str, verdict: str, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "cache_bytes_in_all", lambda: 4096)
    (entry,) = entries((name,))
    found = judge(entry.problem_source, entry.source)
    assert found.verdict.value == verdict, f"{found.detail} {found.rejections}"
    assert (found.speedup is not None) == (verdict == "correct")
