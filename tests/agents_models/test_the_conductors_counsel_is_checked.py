"""Evidence must be in the profile and true of it; what is invented goes back once and is left out then."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.agents.facts import AdviceGiven
from apps.agents.words import Advice, NothingToGain
from apps.agents.writers.counsel import counsel_in
from apps.agents.writers.unusable import Unusable
from apps.kernels.evaluation import Metric
from tests.agents_models.server import Reply
from tests.agents_models.world import ModelRun, answer, counsel, in_turn, is_conductor

METRICS = {
    "scaling": Metric("scaling", 1.2, "x", "timing"),
    "time_over_reference": Metric("time_over_reference", 0.5, "ratio", "timing"),
}


def advised(server: Any, settings: Any, *replies: Reply) -> tuple[Advice | NothingToGain, list[str]]:
    """What comes of the Conductor's answers, and what it was asked."""
    answers = iter(replies)
    server.script.play_by(in_turn([answer("correct 2.0")], lambda: next(answers, replies[-1])))
    run = ModelRun(settings)
    ended = run.start(iterations=1)
    asked = [request.prompt for request in server.script.requests if is_conductor(request)]
    given = run.world.told(AdviceGiven)
    return (given[0].advice if given else NothingToGain(ended.reason)), asked


def test_invented_evidence_goes_back_once_with_the_reason(server: Any, settings_of: Any) -> None:
    advice, asked = advised(server, settings_of(), counsel("warp_stalls"), counsel())
    assert isinstance(advice, Advice)
    assert [one.metric for one in advice.evidence] == ["minor_faults"]
    assert "`warp_stalls`, and no metric of the profile is called so" in asked[1]


def test_evidence_carries_what_was_measured(server: Any, settings_of: Any) -> None:
    advice, _ = advised(server, settings_of(), counsel())
    assert isinstance(advice, Advice)
    assert advice.evidence[0].value == pytest.approx(200 / 1.5)
    assert advice.evidence[0].unit == "faults"


def test_what_is_invented_twice_is_left_out_and_that_is_said(server: Any, settings_of: Any) -> None:
    advice, asked = advised(server, settings_of(), counsel("warp_stalls"))
    assert isinstance(advice, Advice)
    assert len(asked) == 2
    assert advice.evidence == ()
    assert advice.change == "Allocate less."
    assert "Left out" in advice.reasoning


def test_where_nothing_can_be_used_the_profile_speaks_for_itself(server: Any, settings_of: Any) -> None:
    advice, asked = advised(server, settings_of(), Reply("It is hard to say."))
    assert isinstance(advice, Advice)
    assert len(asked) == 2
    assert advice.bottleneck == "page faults"
    assert advice.evidence[0].metric == "minor_faults"
    assert "could not be used: it holds no JSON object" in advice.reasoning


def test_nothing_to_gain_ends_the_run_with_the_models_reason(server: Any, settings_of: Any) -> None:
    nothing, _ = advised(server, settings_of(), Reply('{"nothing_to_gain": "It is at 97% of the roof."}'))
    assert isinstance(nothing, NothingToGain)
    assert "It is at 97% of the roof." in nothing.reason


GOOD = {
    "bottleneck": "single thread",
    "evidence": [{"metric": "scaling", "relation": "<", "threshold": 1.5}],
    "change": "Use threads.",
    "expected": [{"metric": "time_over_reference", "ratio": 0.6, "low": 0.5, "high": 0.8}],
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"Here:\n```json\n{json.dumps(GOOD, indent=2)}\n```\nThat is it.",
        f'First {{"note": 1}} and then {json.dumps(GOOD)}.',
        json.dumps(GOOD)[:-1] + ",}",
        f'<think>{{"bottleneck": "no", "change": "no"}}</think>{json.dumps(GOOD)}',
        json.dumps(GOOD | {"evidence": {"metric": "scaling", "relation": "<=", "threshold": "1.5"}}),
    ],
)
def test_json_is_found_in_any_wrapping(text: str) -> None:
    found = counsel_in(text, METRICS)
    assert found.problems == ()
    assert (found.bottleneck, found.evidence[0].value, found.expected[0].ratio) == ("single thread", 1.2, 0.6)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"evidence": [{"metric": "scaling", "relation": ">", "threshold": 1.5}]},
            "`scaling` is 1.2, which is not > 1.5",
        ),
        ({"evidence": [{"metric": "scaling", "relation": "about", "threshold": 1}]}, "needs a `relation`"),
        ({"evidence": ["scaling is low"]}, "no metric of the profile is called so"),
        ({"evidence": []}, "no evidence that holds"),
        ({"expected": []}, "no prediction"),
        ({"expected": [{"metric": "scaling", "ratio": 2, "low": 3, "high": 4}]}, "`low` <= `ratio` <= `high`"),
        ({"expected": [{"metric": "luck", "ratio": 2}]}, "`luck`"),
        ({"bottleneck": ""}, "`bottleneck` is missing"),
        ({"change": None}, "`change` is missing"),
        ({"evidence": "scaling"}, "`evidence` is no list"),
    ],
)
def test_each_fault_is_named(change: dict[str, Any], problem: str) -> None:
    assert any(problem in one for one in counsel_in(json.dumps(GOOD | change), METRICS).problems)


@pytest.mark.parametrize("text", ["", "no", "{", "[1]", '{"a": 1}', "{" * 5000])
def test_an_answer_without_counsel_is_unusable(text: str) -> None:
    with pytest.raises(Unusable):
        counsel_in(text, METRICS)
