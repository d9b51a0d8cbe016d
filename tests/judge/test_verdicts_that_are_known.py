"""The self-test's corpus, candidate by candidate: what it judges by, it is judged by here, on the same path.

Nothing is timed against anything, so that several of these may run at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from apps.kernels.jail import Zygote
from apps.kernels.selftest import bench as trying_one
from apps.kernels.selftest.bench import Bench
from apps.kernels.selftest.corpus import HONEST, KINDS, Entry, entries

BY_PROBLEM = sorted(entries(), key=lambda entry: entry.problem)  # opened once for those that follow one another


@pytest.fixture(scope="module")
def bench(zygote: Zygote) -> Iterator[Bench]:
    """The problems' oracles and what was built, for all of them."""
    with Bench(zygote) as bench:
        yield bench


@pytest.mark.verdicts
@pytest.mark.parametrize("entry", BY_PROBLEM, ids=lambda entry: entry.title)
def test_it_gets_the_verdict_it_deserves_for_the_true_reason(entry: Entry, bench: Bench) -> None:
    tried = bench.tried(entry)
    if entry.kind == "cached" and tried.found == "correct":
        # Which elements change is drawn: a key of two of them is the same again in one quick look of some eight.
        tried = bench.tried(entry)
    assert tried.as_expected, f"{tried.why}, but it is {tried.found}: {tried.reason}"


class _Problem:
    """Stands for a problem that was opened; counts those that are open."""

    now = most = 0

    @classmethod
    def of(cls, *_: object) -> _Problem:
        cls.now += 1
        cls.most = max(cls.most, cls.now)
        return cls()

    def close(self) -> None:
        _Problem.now -= 1


def test_a_bench_keeps_few_problems_open_and_closes_them_all(zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying_one, "Opened", _Problem)
    monkeypatch.setattr(trying_one, "prove", lambda *_, **__: SimpleNamespace(evaluation=None, built=None))
    with Bench(zygote) as bench:
        for entry in {entry.problem: entry for entry in entries() if entry.by == "run"}.values():
            bench.judge(entry)
    assert _Problem.most == trying_one.OPEN_AT_ONCE and _Problem.now == 0


def test_every_kind_of_cheating_has_candidates_of_its_own_and_enough_are_honest() -> None:
    corpus = entries()
    assert {entry.kind for entry in corpus} == {*KINDS}
    assert len({entry.title for entry in corpus}) == len(corpus)
    assert sum(entry.kind != HONEST for entry in corpus) >= 60 and sum(entry.kind == HONEST for entry in corpus) >= 30


def test_every_file_of_the_corpus_is_in_its_index() -> None:
    from apps.kernels.selftest.corpus import PLACE

    listed = {entry.title for entry in entries()}
    lying = {f"{path.parent.name}/{path.stem}" for path in (PLACE / "candidates").glob("*/*.py")}
    assert lying == listed
    assert {path.stem for path in (PLACE / "problems").glob("*.py")} == {entry.problem for entry in entries()}


def test_patterns_choose_by_kind_and_by_name() -> None:
    assert {entry.kind for entry in entries(("late",))} == {"late"}
    assert {entry.title for entry in entries(("late/a_*", "kept"))} >= {"late/a_child_process", "kept/in_tmp"}
    assert entries(("nothing",)) == ()
