"""Refuted predictions cost trust, held ones bring it; nothing is tried twice; the same history gives the same answer."""

from __future__ import annotations

import json
from dataclasses import replace

from apps.agents import conductor
from apps.agents.builtin import BuiltinConductor
from apps.agents.builtin.plan import Plan, Step, step_of
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.search import FIRST_TRUST, Search
from apps.agents.words import Advice, Assignment, History, NothingToGain
from apps.kernels.evaluation import Evaluation, Verdict
from apps.kernels.plain import from_plain, to_plain
from tests.builtin_search.situations import after, assignment, evaluation, failed, quiet, version

FOUND = {"hot_loop_div_sqrt": 1.0, "share_of_memory_roof": 0.3, "intensity": 0.5, "ridge": 4.0}
START = Plan(Schedule(width=512, polynomials=True))


def step(answer: Advice | NothingToGain) -> Step:
    assert isinstance(answer, Advice), answer
    found = step_of(answer)
    assert found is not None
    return found


def followed(run: Assignment, history: History, judged: Evaluation) -> tuple[History, str]:
    """The history one iteration on, with an outcome of what is advised; and the move that was."""
    answer = BuiltinConductor().advise(run, history, quiet)
    chosen = step(answer)
    assert isinstance(answer, Advice)
    answer = replace(answer, number=len(history.advices) + 1)
    number = len(history.attempts) + 1
    attempt = version(run, number, chosen.plan, judged, advice=answer.number)
    history = replace(history, attempts=(*history.attempts, attempt), advices=(*history.advices, answer))
    held = conductor.due(history, number)
    champion = conductor.champion(history)
    assert champion is not None
    return replace(history, holdings=(*history.holdings, *held), best=champion.number), chosen.name


def test_a_refuted_prediction_costs_trust_and_one_that_held_brings_some() -> None:
    run = assignment("softmax")
    start = after(run, START, FOUND)
    refuted, move = followed(run, start, evaluation(5.4, FOUND))
    held, same = followed(run, start, evaluation(4.4, {**FOUND, "hot_loop_div_sqrt": 0.0}))
    assert move == same
    assert Search(run, refuted).trust(move) < FIRST_TRUST / 2
    assert Search(run, held).trust(move) > FIRST_TRUST


def test_a_move_that_helped_otherwise_than_predicted_keeps_most_of_its_trust() -> None:
    run = assignment("softmax")
    start = after(run, START, FOUND)
    helped, move = followed(run, start, evaluation(1.0, {**FOUND, "hot_loop_div_sqrt": 0.0}))
    refuted, _ = followed(run, start, evaluation(5.4, FOUND))
    assert not helped.holdings[0].held
    assert Search(run, refuted).trust(move) < Search(run, helped).trust(move) < FIRST_TRUST


def test_a_move_whose_version_failed_is_trusted_least() -> None:
    run = assignment("softmax")
    history, move = followed(run, after(run, START, FOUND), failed(Verdict.INCORRECT))
    assert history.best == 1
    assert Search(run, history).trust(move) < FIRST_TRUST * 0.3


def test_less_trust_makes_way_for_another_move() -> None:
    run = assignment("softmax")
    history, first = followed(run, after(run, START, FOUND), evaluation(5.4, FOUND))
    assert step(BuiltinConductor().advise(run, history, quiet)).name != first


def test_nothing_is_tried_twice_and_the_search_ends_with_a_reason() -> None:
    run = assignment("softmax")
    history = after(run, START, FOUND)
    sources = {history.attempts[0].writing.source}
    for _ in range(40):
        answer = BuiltinConductor().advise(run, history, quiet)
        if isinstance(answer, NothingToGain):
            assert "v1" in answer.reason
            break
        history, _ = followed(run, history, evaluation(5.5, FOUND))
        source = history.attempts[-1].writing.source
        assert source not in sources
        sources.add(source)
    else:
        raise AssertionError("it never ends")
    assert len(history.attempts) > 3


def test_several_candidates_of_an_iteration_get_different_moves() -> None:
    run = assignment("softmax")
    history = after(run, START, FOUND)
    first = BuiltinConductor().advise(run, history, quiet)
    assert isinstance(first, Advice)
    second = BuiltinConductor().advise(run, replace(history, advices=(replace(first, number=1),)), quiet)
    assert step(first).name != step(second).name
    assert step(first).plan.schedule != step(second).plan.schedule


def test_the_best_version_is_what_is_edited() -> None:
    run = assignment("softmax")
    history, _ = followed(run, after(run, START, FOUND), evaluation(5.6, FOUND))
    answer = BuiltinConductor().advise(run, history, quiet)
    assert isinstance(answer, Advice)
    assert answer.base == 1
    better, move = followed(run, after(run, START, FOUND), evaluation(4.2, FOUND))
    chosen = step(BuiltinConductor().advise(run, better, quiet))
    assert chosen.plan.moves[0] == move
    assert chosen.plan.base == 2


def test_the_same_history_gives_the_same_words_and_numbers() -> None:
    run = assignment("softmax")
    history, _ = followed(run, after(run, START, FOUND), evaluation(4.2, FOUND))
    read_back = from_plain(History, json.loads(json.dumps(to_plain(history))))
    said: list[list[str]] = [[], []]
    answers = [BuiltinConductor().advise(run, h, said[i].append) for i, h in enumerate((history, read_back))]
    assert to_plain(answers[0]) == to_plain(answers[1])
    assert said[0] == said[1]


def test_the_last_outcome_is_said() -> None:
    run = assignment("softmax")
    refuted, _ = followed(run, after(run, START, FOUND), evaluation(5.4, FOUND))
    answer = BuiltinConductor().advise(run, refuted, quiet)
    assert isinstance(answer, Advice)
    assert "Advice 1 predicted" in answer.reasoning
    assert "refuted" in answer.reasoning
    assert "1.08" in answer.reasoning  # 5.4 ms after 5


def test_uncertain_times_refute_nothing_for_sure() -> None:
    run = assignment("softmax")
    noisy = evaluation(5.2, FOUND)
    assert noisy.timing.speedup is not None
    noisy = replace(noisy, timing=replace(noisy.timing, speedup=replace(noisy.timing.speedup, ci95=(1.2, 3.5))))
    sure, move = followed(run, after(run, START, FOUND), evaluation(5.2, FOUND))
    unsure, _ = followed(run, after(run, START, FOUND), noisy)
    assert Search(run, sure).trust(move) < Search(run, unsure).trust(move) < FIRST_TRUST
    answer = BuiltinConductor().advise(run, unsure, quiet)
    assert isinstance(answer, Advice)
    assert "too uncertain" in answer.reasoning
