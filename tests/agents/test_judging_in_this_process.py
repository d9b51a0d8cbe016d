"""A run without broker or station: the judge is called here, and Ctrl-C stops what it is doing."""

from __future__ import annotations

import pytest

from apps.agents.coders import UnknownCoder, coder_named
from apps.agents.local import Interrupt, LocalEvaluator, Observe, WallClock
from apps.agents.ports import JudgingFailed, Stopped
from apps.kernels.evaluation import Evaluation, EvaluationRequest, Progress, Tier
from apps.kernels.jail import Zygote, ZygoteFailed
from apps.kernels.machine import HostReport
from tests.agents.doubles import an_assignment, an_evaluation


class Judge:
    """Judges as the source says; `while_judging` happens between two of its news."""

    def __init__(self, while_judging: object = None) -> None:
        self.requests: list[EvaluationRequest] = []
        self.while_judging = while_judging

    def __call__(self, request: EvaluationRequest, *, zygote: Zygote, host: HostReport, observe: Observe) -> Evaluation:
        self.requests.append(request)
        observe(Progress("build", "g++"))
        if isinstance(self.while_judging, Exception):
            raise self.while_judging
        if callable(self.while_judging):
            self.while_judging()
        observe(Progress("time", "pair 3", 0.5))
        return an_evaluation(request.candidate, request.tier)


def evaluated(judge: Judge, interrupt: Interrupt | None = None, **options: object) -> tuple[Evaluation, list[str]]:
    said: list[str] = []
    device = LocalEvaluator(an_assignment(overrides={"N": 8}), Zygote("light"), interrupt=interrupt, judge=judge)
    options = {"profile": True, **options}
    return device.evaluate("1.0.verify.0", "correct 1.5", Tier.FULL, say=said.append, **options), said  # type: ignore[arg-type]


def test_all_of_the_assignment_and_of_the_question_reaches_the_judge() -> None:
    judge = Judge()
    evaluation, said = evaluated(judge, against="correct 1.2", real_headers=True)
    assert evaluation.speedup == 1.5
    assert said == ["build: g++\n", "time: pair 3 (50%)\n"]
    (request,) = judge.requests
    assert request.overrides == {"N": 8} and request.tier is Tier.FULL and request.policy is an_assignment().policy
    assert request.against == "correct 1.2" and request.real_headers and request.profile


def test_a_stop_interrupts_the_judgement_in_hand() -> None:
    interrupt = Interrupt()
    with pytest.raises(Stopped) as stopped:
        evaluated(Judge(interrupt.ask), interrupt)
    assert not stopped.value.at_once
    assert interrupt.read("write").end == "Stopped."


def test_the_last_judgement_goes_on_after_a_stop_and_ends_at_a_second_one() -> None:
    interrupt = Interrupt()
    interrupt.ask()
    assert evaluated(Judge(), interrupt, finishing=True)[0].speedup == 1.5
    with pytest.raises(Stopped) as stopped:
        evaluated(Judge(interrupt.ask), interrupt, finishing=True)
    assert stopped.value.at_once


def test_a_judge_that_cant_start_its_jail_says_nothing_of_the_candidate() -> None:
    with pytest.raises(JudgingFailed, match="torch is not installed"):
        evaluated(Judge(ZygoteFailed("torch is not installed; pip install torch")))


def test_the_wall_goes_on_between_two_processes() -> None:
    assert WallClock().now() > 1_700_000_000


def test_a_model_as_coder_is_refused_with_what_can_be_used() -> None:
    with pytest.raises(UnknownCoder, match=r"'gpt-9'.*use 'builtin'"):
        coder_named("gpt-9")
