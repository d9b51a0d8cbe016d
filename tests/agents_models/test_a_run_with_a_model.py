"""A whole run whose Coder and Conductor are models over HTTP: what comes of good, broken, dishonest and idle answers."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.coders import UnknownCoder, check_coder, coder_named
from apps.agents.facts import AdviceGiven, CandidateDropped, StepEnded, VersionKept
from apps.agents.gateway.purse import Call, Largest, OverLimit
from apps.agents.journal import MemoryJournal, from_transcript, to_transcript
from apps.agents.ports import Stopped
from apps.agents.words import Ending
from tests.agents.doubles import Ears, Killed, MortalJournal, World
from tests.agents_models.conftest import KEY
from tests.agents_models.server import ECHO, Reply, Request
from tests.agents_models.world import ModelRun, answer, counsel, in_turn, is_coder, is_conductor, is_verifier

CHATTER = Reply("I would be glad to help you with kernels! Which one would you like?")
TEN = [
    answer("correct 1.8"),
    answer("build_failed"),  # repaired
    answer("correct 2.0"),
    answer("rejected"),  # a cheat, and its repair is one too
    answer("rejected", "// another"),
    CHATTER,  # sent back, then well
    answer("correct 1.2"),
    answer("correct 2.6"),
    answer("incorrect"),
    answer("crashed"),
    CHATTER,  # twice: dropped
    CHATTER,
    answer("correct 3.0"),
    answer("correct 3.0"),  # word for word: sent back
    answer("correct 2.9"),
    answer("correct 2.8"),
]


def test_ten_iterations_of_everything(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn(TEN))
    run = ModelRun(settings_of())
    ended = run.start(iterations=10)
    versions = [fact.attempt for fact in run.world.told(VersionKept)]
    dropped = [fact.unwritten for fact in run.world.told(CandidateDropped)]
    assert ended.speedup == pytest.approx(3.0)
    assert ended.ending is Ending.FINISHED
    assert [one.evaluation.verdict.value for one in versions[1:8]] == [
        "correct", "build_failed", "correct", "rejected", "rejected", "correct", "correct",
    ]  # fmt: skip
    assert [one.reason for one in dropped] == [
        "Twice the answer could not be used: it holds no code. Give the whole file in one fenced Python block."
    ]
    assert {one.author for one in versions[1:]} == {"openai/scripted"}
    assert sum(is_conductor(request) for request in server.script.requests) == 10
    assert sum(is_coder(request) for request in server.script.requests) == len(TEN)
    assert sum(is_verifier(request) for request in server.script.requests) == 1  # of the wrong answer
    assert KEY not in run.everything()


def test_what_each_step_said_and_took_is_kept(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn([CHATTER, answer("correct 2.0")]))
    run = ModelRun(settings_of())
    run.start(iterations=1)
    step = next(fact for fact in run.world.told(StepEnded) if fact.agent == "coder")
    assert "glad to help" in step.text
    assert "[Sent back: That can't be used: it holds no code" in step.text
    assert step.text == "".join(text for key, _, text in run.world.texts if key == step.step)
    assert step.summary == "make it correct 2.0, ***."
    assert (step.usage.tokens_in, step.usage.tokens_out) == (200, 100)
    assert step.usage.cost_usd == pytest.approx(2 * (100 * 2e-6 + 50 * 10e-6))
    reason = next(fact for fact in run.world.told(StepEnded) if fact.agent == "conductor")
    assert reason.text.startswith("<think>\nThe key is ***.")
    assert run.world.told(AdviceGiven)[0].advice.reasoning == "Fresh pages cost."
    assert run.world.told(AdviceGiven)[0].advice.said == ""


MISBEHAVIOURS = [
    "429",
    "500",
    "deaf",
    "hang",
    "trickle",
    "cut",
    "malformed",
    "error-event",
    "html",
    "empty",
    "no usage",
]


@pytest.mark.parametrize("kind", MISBEHAVIOURS)
def test_a_run_ends_honestly_whatever_the_server_does(server: Any, settings_of: Any, kind: str) -> None:
    bad = {
        "empty": Reply(""),
        "no usage": Reply(f"just words {ECHO}", counts=None),
    }.get(kind, Reply(f"half {ECHO}", f"hm {ECHO}", misbehaviour=kind, body=f"no: {ECHO}", retry_after="0"))
    server.script.play(bad)
    run = ModelRun(settings_of(read_seconds=0.3, wall_seconds=0.3, tries=2))
    ended = run.start(iterations=3)
    assert ended.result == 1
    assert ended.speedup == pytest.approx(1.5)
    assert ended.reason.startswith("The coder has written nothing new in 2 iterations:")
    assert all(len(fact.unwritten.reason) > 20 for fact in run.world.told(CandidateDropped))
    assert KEY not in run.everything()
    assert KEY[:-4] not in run.everything()


@pytest.mark.parametrize(
    ("status", "words"),
    [("401", "Key: "), ("404", "Name: "), ("402", "Quota: ")],
)
def test_a_model_that_cannot_be_used_ends_the_run_with_its_best(
    server: Any, settings_of: Any, status: str, words: str
) -> None:
    refusing = Reply(f"not you, {ECHO}", misbehaviour=status)
    server.script.play_by(in_turn([answer("correct 2.0"), refusing]))
    run = ModelRun(settings_of())
    ended = run.start(iterations=5)
    assert (ended.ending, ended.result) == (Ending.FAILED, 2)
    assert ended.reason.startswith(words)
    assert KEY not in run.everything()


def test_a_limit_of_money_ends_the_run_with_its_best(server: Any, settings_of: Any) -> None:
    class Purse:
        calls = 0

        def reserve(self, model: str, purpose: str, largest: Largest) -> str:
            self.calls += 1
            if self.calls > 3:
                raise OverLimit("Ann's limit of 5 USD a month leaves 0.01 USD, and this call could cost 0.3.")
            return purpose

        def settle(self, token: str, call: Call) -> None:
            assert KEY not in repr(call)

    server.script.play_by(in_turn([answer("correct 2.0")]))
    ended = ModelRun(settings_of(), purse=Purse()).start(iterations=5)
    assert (ended.ending, ended.result) == (Ending.FINISHED, 2)
    assert ended.reason.startswith("Ann's limit")


def test_a_stop_interrupts_the_model_and_keeps_what_it_said(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn([Reply("I was about to", misbehaviour="hang")]))

    def heed() -> None:
        if any("I was about to" in text for _, _, text in run.world.texts):
            raise Stopped("Stopped by Ann.")

    run = ModelRun(settings_of(), heed=heed)
    ended = run.start()
    coder = next(fact for fact in run.world.told(StepEnded) if fact.agent == "coder")
    assert (ended.ending, ended.result) == (Ending.STOPPED, 1)
    assert "I was about to" in coder.text
    assert coder.usage.estimated


def test_a_hint_joins_the_next_prompts(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn([answer("correct 2.0")]))
    run = ModelRun(settings_of(), world=World({}, hints=["Try tiles of 64 rows."]))
    run.start(iterations=1)
    assert all("Try tiles of 64 rows." in request.prompt for request in server.script.requests)


def test_candidates_of_an_iteration_come_from_different_advice_and_temperatures(server: Any, settings_of: Any) -> None:
    changes = iter(["Use tiles.", "Use threads.", "Use streams."] * 9)
    speeds = iter(range(10, 99))

    def reply(request: Request) -> Reply:
        return counsel(change=next(changes)) if is_conductor(request) else answer(f"correct 1.{next(speeds)}")

    server.script.play_by(reply)
    ModelRun(settings_of()).start(iterations=1, candidates=3)
    conductor = [request for request in server.script.requests if is_conductor(request)]
    coder = [request for request in server.script.requests if not is_conductor(request)]
    assert [request.body["temperature"] for request in coder] == [0.2, 0.6, 0.8]
    for request, change in zip(coder, ["Use tiles.", "Use threads.", "Use streams."], strict=True):
        assert change in request.prompt
    assert "Already advised" not in conductor[0].prompt
    assert "Use tiles." in conductor[1].prompt.partition("Already advised")[2]


def test_with_the_profile_off_no_figure_but_time_is_told(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn([answer("correct 2.0")], lambda: counsel("time_over_reference", 0.1)))
    run = ModelRun(settings_of())
    run.start(iterations=2, profile=False)
    assert all("minor_faults" not in request.prompt for request in server.script.requests)
    assert run.world.told(AdviceGiven)[0].advice.evidence[0].metric == "time_over_reference"


def test_a_failed_candidate_is_sent_for_repair_with_its_error(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn([answer("build_failed"), answer("correct 2.0")]))
    ModelRun(settings_of()).start(iterations=1)
    repair = [request for request in server.script.requests if not is_conductor(request)][1]
    assert "error: 'x' was not declared" in repair.prompt
    assert "# judged: build_failed" in repair.prompt


@pytest.mark.parametrize("recorded", [True, False])
def test_a_worker_killed_anywhere_asks_no_question_twice(server: Any, settings_of: Any, recorded: bool) -> None:
    def by_what_is_asked(request: Request) -> Reply:
        """The same question gets the same answer, as often as it is asked."""
        if is_conductor(request):
            return counsel()
        return answer("correct 1.9" if "judged: correct 1.7" in request.prompt else "correct 1.7")

    def fresh() -> None:
        server.script.play_by(by_what_is_asked)

    fresh()
    whole = ModelRun(settings_of())
    expected = whole.start(iterations=2)
    asked = len(server.script.requests)
    for dies_at in range(len(whole.journal.records)):
        fresh()
        run = ModelRun(settings_of())
        mortal = MortalJournal(Ears(run.world), (), dies_at, recorded=recorded)
        with pytest.raises(Killed):
            run.start(mortal, iterations=2)
        ended = run.start(MemoryJournal(Ears(run.world), mortal.records), iterations=2)
        assert ended == expected
        assert len(server.script.requests) - asked in ((0,) if recorded else (0, 1))


def test_a_transcript_is_shown_again_without_any_model(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn(TEN))
    run = ModelRun(settings_of())
    ended = run.start(iterations=4)
    server.script.play()
    again = ModelRun(settings_of())
    transcript = from_transcript(to_transcript(run.journal.records))
    assert again.start(MemoryJournal(Ears(again.world), transcript, retell=True), iterations=4) == ended
    assert again.world.facts == run.world.facts
    assert server.script.requests == []


def test_without_settings_a_model_is_refused_and_with_those_of_another_too(settings_of: Any) -> None:
    with pytest.raises(UnknownCoder, match="builtin"):
        check_coder("openai/scripted")
    with pytest.raises(UnknownCoder):
        coder_named("openai/scripted")
    with pytest.raises(UnknownCoder, match="scripted"):
        coder_named("openai/other", settings_of())
