"""A failure that the judge's words leave open is read by the model, once, bounded and checked, before it is repaired."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.agents import verifier
from apps.agents.facts import StepEnded, VersionKept
from apps.agents.gateway.purse import Call, Largest, OverLimit
from apps.agents.journal import MemoryJournal, Record, from_transcript, to_transcript
from apps.agents.ports import Stopped
from apps.agents.replay import replay
from apps.agents.words import Attempt, Ending, History, Writing
from apps.agents.writers import questions
from apps.agents.writers.diagnosis import diagnosis_in
from apps.agents.writers.excerpt import numbered
from apps.agents.writers.unusable import Unusable
from apps.kernels.evaluation import Build, Correctness, Evaluation, Policy, Rejection, Tier, Trial, Verdict
from tests.agents.doubles import Ears, Killed, MortalJournal, World, an_evaluation
from tests.agents_models.conftest import KEY
from tests.agents_models.server import Reply, Request
from tests.agents_models.world import (
    ModelRun,
    a_kernel,
    a_model_assignment,
    answer,
    counsel,
    diagnosis,
    in_turn,
    is_coder,
    is_conductor,
    is_verifier,
)

WRONG_THEN_RIGHT = [answer("incorrect"), answer("correct 2.0")]
LINE = a_kernel("incorrect").splitlines()[4]


def read(run: ModelRun) -> list[StepEnded]:
    return [fact for fact in run.world.told(StepEnded) if ".diagnose." in fact.step]


def asked(server: Any, who: Any) -> list[Request]:
    return [request for request in server.script.requests if who(request)]


def test_a_wrong_answer_is_read_and_the_reading_joins_the_repair(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn(WRONG_THEN_RIGHT))
    run = ModelRun(settings_of())
    run.start(iterations=1)
    (question,) = asked(server, is_verifier)
    for said in ("5 | SOURCE", "Check values (4 float32)", "class Model(nn.Module)", "16x64x64x64 float32"):
        assert said in question.prompt
    assert "$" not in question.prompt
    assert question.body["max_tokens"] == 4000
    repair = asked(server, is_coder)[1].prompt
    assert f"The last block is not masked.\nLine 5: `{LINE}`\nTo change: Mask it." in repair
    (step,) = read(run)
    assert (step.agent, step.summary) == ("verifier", "Line 5: The last block is not masked. Mask it.")
    assert step.text == "".join(text for key, who, text in run.world.texts if key == step.step and who == "verifier")
    assert (step.usage.tokens_in, step.usage.tokens_out) == (100, 50)
    assert step.usage.cost_usd == pytest.approx(100 * 2e-6 + 50 * 10e-6)
    assert KEY not in run.everything()


def test_later_prompts_know_why_it_failed(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn([*WRONG_THEN_RIGHT, answer("correct 3.0")]))
    ModelRun(settings_of()).start(iterations=2)
    last = asked(server, is_coder)[-1].prompt
    assert "v2: Computes something else than the reference: incorrect it is. The Verifier reads it so: The last" in last


@pytest.mark.parametrize("judged", ["build_failed", "rejected"])
def test_what_explains_itself_is_not_read(server: Any, settings_of: Any, judged: str) -> None:
    server.script.play_by(in_turn([answer(judged), answer("correct 2.0")]))
    ModelRun(settings_of()).start(iterations=1)
    assert asked(server, is_verifier) == []


def test_the_last_failure_of_a_slot_is_not_read(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn([answer("incorrect"), answer("crashed")]))
    ModelRun(settings_of()).start(iterations=1)
    assert len(asked(server, is_verifier)) == 1


@pytest.mark.parametrize(
    ("useless", "why"),
    [
        (Reply("It looks wrong to me."), "it holds no JSON object with `wrong`, `line` and `change`"),
        (diagnosis(99), "`line` is 99, and the candidate has lines 1 to"),
        (diagnosis(3), "line 3 of the candidate is empty"),
        (diagnosis("there"), "`line` is no line's number"),
        (diagnosis(change=""), "`change` is missing"),
    ],
)
def test_what_cannot_be_used_goes_back_once_and_then_the_error_stands_alone(
    server: Any, settings_of: Any, useless: Reply, why: str
) -> None:
    server.script.play_by(in_turn(WRONG_THEN_RIGHT, verifier=lambda: useless))
    run = ModelRun(settings_of())
    ended = run.start(iterations=1)
    assert len(asked(server, is_verifier)) == 2
    assert f"That can't be used: {why}" in asked(server, is_verifier)[1].prompt
    assert "How the Verifier reads it" not in asked(server, is_coder)[1].prompt
    assert read(run)[0].summary.startswith(f"No reading of the error: {why}")
    assert (ended.result, read(run)[0].usage.tokens_in) == (3, 200)


def test_a_second_answer_that_is_right_is_used(server: Any, settings_of: Any) -> None:
    answers = iter([diagnosis(99), diagnosis(5)])
    server.script.play_by(in_turn(WRONG_THEN_RIGHT, verifier=lambda: next(answers)))
    ModelRun(settings_of()).start(iterations=1)
    assert "Line 5: `" in asked(server, is_coder)[1].prompt


def test_a_model_that_gives_no_reading_twice_is_not_asked_again(server: Any, settings_of: Any) -> None:
    wrong = [answer("incorrect", f"// {n}") for n in range(8)]
    server.script.play_by(in_turn(wrong, verifier=lambda: Reply("Hm.")))
    run = ModelRun(settings_of())
    run.start(iterations=4)
    assert len(read(run)) == 2


def test_a_limit_that_does_not_allow_a_reading_leaves_the_repair_to_be_tried(server: Any, settings_of: Any) -> None:
    class Purse:
        def reserve(self, model: str, purpose: str, largest: Largest) -> str:
            if purpose.startswith("diagnose"):
                assert largest.tokens < 10_000  # the bound of the answer, not the model's own
                raise OverLimit("Ann's limit of 5 USD a month leaves 0.01 USD.")
            return purpose

        def settle(self, token: str, call: Call) -> None: ...

    server.script.play_by(in_turn(WRONG_THEN_RIGHT))
    run = ModelRun(settings_of(), purse=Purse())
    ended = run.start(iterations=1)
    assert (ended.ending, ended.result) == (Ending.FINISHED, 3)
    assert read(run)[0].summary.startswith("No reading of the error: Ann's limit")


def test_money_that_is_just_enough_for_the_repair_is_left_for_it(server: Any, settings_of: Any) -> None:
    call = 100 * 2e-6 + 50 * 10e-6
    for money, readings in ((3.5 * call, 0), (4.5 * call, 1)):  # an advice and a candidate are paid for by then
        server.script.play_by(in_turn(WRONG_THEN_RIGHT))
        run = ModelRun(settings_of())
        run.start(iterations=1, money_usd=money)
        assert len(asked(server, is_verifier)) == readings
        assert [fact.attempt.evaluation.verdict for fact in run.world.told(VersionKept)][-1] is Verdict.CORRECT


def test_a_stop_interrupts_the_reading(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn(WRONG_THEN_RIGHT, verifier=lambda: Reply("It is", misbehaviour="hang")))

    def heed() -> None:
        if asked(server, is_verifier):
            raise Stopped("Stopped by Ann.")

    run = ModelRun(settings_of(), heed=heed)
    ended = run.start()
    assert (ended.ending, ended.result) == (Ending.STOPPED, 1)
    assert read(run)[0].summary == "Stopped by Ann."


def test_a_key_that_is_wrong_ends_the_run(server: Any, settings_of: Any) -> None:
    server.script.play_by(in_turn(WRONG_THEN_RIGHT, verifier=lambda: Reply("no", misbehaviour="401")))
    ended = ModelRun(settings_of()).start()
    assert (ended.ending, ended.result) == (Ending.FAILED, 1)


@pytest.mark.parametrize("recorded", [True, False])
def test_a_worker_killed_around_a_reading_asks_nothing_twice(server: Any, settings_of: Any, recorded: bool) -> None:
    def by_what_is_asked(request: Request) -> Reply:
        if is_conductor(request):
            return counsel()
        if is_verifier(request):
            return diagnosis()
        return answer("correct 2.0" if "How the Verifier reads it" in request.prompt else "incorrect")

    server.script.play_by(by_what_is_asked)
    whole = ModelRun(settings_of())
    expected, count = whole.start(iterations=1), len(server.script.requests)
    keys = [record.key for record in whole.journal.records]
    for dies_at in range(keys.index("1.0.verify.0"), keys.index("1.0.verify.1")):
        server.script.play_by(by_what_is_asked)
        run = ModelRun(settings_of())
        mortal = MortalJournal(Ears(run.world), (), dies_at, recorded=recorded)
        with pytest.raises(Killed):
            run.start(mortal, iterations=1)
        assert run.start(MemoryJournal(Ears(run.world), mortal.records), iterations=1) == expected
        assert len(server.script.requests) - count in ((0,) if recorded else (0, 1))


def test_transcripts_with_and_without_readings_replay(server: Any, settings_of: Any) -> None:
    for has_verifier in (True, False):
        server.script.play_by(in_turn(WRONG_THEN_RIGHT))
        run = ModelRun(settings_of(), verifier=has_verifier)
        ended = run.start(iterations=2)
        records = from_transcript(to_transcript(run.journal.records))
        assert any(".diagnose." in record.key for record in records) is has_verifier
        gone = replay(a_model_assignment(iterations=2), "openai/scripted", records)
        assert gone.ended == ended
        assert list(gone.facts) == run.world.facts


def test_an_unfilled_place_of_the_record_is_named(server: Any, settings_of: Any) -> None:
    """The digest of what follows a reading covers it."""
    server.script.play_by(in_turn(WRONG_THEN_RIGHT))
    run = ModelRun(settings_of())
    run.start(iterations=1)
    records = [_altered(record) if record.key == "1.0.diagnose.0" else record for record in run.journal.records]
    with pytest.raises(Exception, match=r"1\.0\.repair\.1 was done from something else"):
        replay(a_model_assignment(iterations=1), "openai/scripted", records)


def _altered(record: Record) -> Record:
    result: Any = record.result
    return replace(record, result=result | {"diagnosis": result["diagnosis"] | {"wrong": "Something else."}})


# --- when the rules suffice -------------------------------------------------------------------------------------


def found(verdict: Verdict, detail: str = "", log: str = "", *rejections: Rejection) -> Evaluation:
    return Evaluation(verdict, Policy.KERNEL, Tier.QUICK, detail, rejections, build=Build(0.1, log))


NAMED = [
    found(Verdict.BUILD_FAILED, "", "kernel.cpp:12:16: error: 'expg' was not declared in this scope\n   12 | y = expg(x);"),
    found(Verdict.BUILD_FAILED, "", "k.cpp:3:9: error: expected ';' before 'return'\n    3 | a = b"),
    found(Verdict.BUILD_FAILED, "", "/usr/bin/ld: k.o: undefined reference to `cblas_sgemm'"),
    found(Verdict.BUILD_FAILED, "it raised while imported:\nNameError: name 'os' is not defined\n  candidate.py:9 in load: os"),
    found(Verdict.BUILD_FAILED, "it raised while being imported:\nSyntaxError: invalid syntax (candidate.py, line 7)"),
    found(Verdict.REJECTED, "", "", Rejection("calls-torch", "line 3", "torch.tanh does the work")),
    found(Verdict.INCORRECT, "its output has shape (2, 3), the reference's (3, 2)"),
]  # fmt: skip
OPEN = [
    found(Verdict.BUILD_FAILED, "", "k.cpp:8:3: error: no matching function for call to 'load(const double*)'"),
    found(Verdict.BUILD_FAILED, "", "k.cpp:3:9: error: expected ';'\nk.cpp:9:3: error: cannot convert 'float' to '__m512'"),
    found(Verdict.CRASHED, "in a call it was killed by SIGSEGV; it touched memory that isn't its own"),
    found(Verdict.CRASHED, "a call raised:\nRuntimeError: shape '[4]' is invalid\n  candidate.py:9 in forward: x.view(4)"),
    found(Verdict.REJECTED, "", "", Rejection("process state", "the candidate's process", "it changes the rounding mode")),
    found(Verdict.INCORRECT, "values: 4 of 16 are wrong, the worst at (0, 3): 1 where the reference has 2"),
    found(Verdict.TIMED_OUT, "a call did not end in time"),
]  # fmt: skip


@pytest.mark.parametrize("evaluation", NAMED)
def test_the_rules_explain(evaluation: Evaluation) -> None:
    assert verifier.explained(evaluation)


@pytest.mark.parametrize("evaluation", OPEN)
def test_a_model_is_worth_asking(evaluation: Evaluation) -> None:
    assert not verifier.explained(evaluation)


def test_the_words_for_another_make_are_the_judges() -> None:
    judge = "".join(path.read_text() for path in sorted(Path("apps/kernels/judge").glob("*.py")))
    assert [words for words in verifier.OTHER_MAKE if f'"incorrect", f"{words}' not in judge] == []


# --- what the model sees, and what is taken of it ---------------------------------------------------------------


def test_only_lines_near_those_of_the_error_are_shown() -> None:
    source = "\n".join(f"x{n} = {n}" for n in range(1, 101))
    shown = numbered(source, "candidate.py:50 in forward: x50 = 50").splitlines()
    assert (shown[0], shown[1], shown[-2], shown[-1]) == ("...", " 35 | x35 = 35", " 65 | x65 = 65", "...")


def test_a_line_that_a_compiler_quotes_is_found_in_the_candidate() -> None:
    source = a_kernel("x", "\n  float bad = y;\n")
    shown = numbered(source, "k.cpp:2:15: error: cannot convert\n    2 |   float bad = y;\n      |   ^")
    assert "float bad = y;" in shown


def test_where_no_line_is_named_kernels_and_the_module_are_shown() -> None:
    source = "import os\n\nSOURCE = '''\nkernel\n'''\n\ndef load():\n    return os\n\nclass ModelNew:\n    pass\n"
    assert numbered(source, "4 of 16 are wrong") == (
        "...\n 3 | SOURCE = '''\n 4 | kernel\n 5 | '''\n...\n10 | class ModelNew:\n11 |     pass"
    )


def test_a_text_is_bounded_and_a_number_may_come_as_text() -> None:
    failed = a_failed()
    taken = diagnosis_in(diagnosis("5", wrong="w" * 5000).text, failed)
    assert (taken.line, len(taken.wrong), taken.version) == (5, 600, 2)
    with pytest.raises(Unusable):
        diagnosis_in(diagnosis(True).text, failed)


def test_the_question_keeps_within_its_room_and_leaves_out_the_module_where_nothing_was_built() -> None:
    long = a_failed(a_kernel("incorrect", "\nint a;" * 380))
    whole = sum(len(one.text) for one in questions.to_diagnose(a_model_assignment(), long, 10**6))
    tight = questions.to_diagnose(a_model_assignment(), long, whole - 1500)
    assert sum(len(one.text) for one in tight) <= whole - 1500
    assert "lines left out" in tight[1].text
    unbuilt = replace(a_failed(), evaluation=found(Verdict.BUILD_FAILED, "", "k.cpp:1:1: error: cannot convert"))
    assert "# The module" not in questions.to_diagnose(a_model_assignment(), unbuilt, 10**6)[1].text


def test_without_a_reading_the_repair_is_asked_for_as_before() -> None:
    assert History().diagnosis(2) is None
    trial = Trial("values", "1", (4,), "float32", False, 2.0, 0.1)
    evaluation = replace(found(Verdict.INCORRECT, "wrong"), correctness=Correctness(1, 0, 2.0, 0.1, (trial,)))
    assert "Check values (4 float32): error 2 where 0.1 is allowed" in verifier.report(evaluation)


def a_failed(source: str = a_kernel("incorrect")) -> Attempt:
    return Attempt(2, 1, 0, 0, 1, "m", Writing(source, "", ""), None, an_evaluation("incorrect"))


def test_a_world_without_a_model_reads_nothing() -> None:
    assert World({}).team(MemoryJournal(Ears(World({})))).verifier is None
