"""What agents said is fetched when it is opened: reasoning folded, prompts of models beside their answers."""

from __future__ import annotations

from typing import Any

from django.test import Client

from apps.agents.facts import StepKey
from apps.agents.gateway.purse import Call, Message, OpenPurse, Question
from apps.agents.words import Usage
from apps.runs import exchanges
from apps.runs.models import Exchange
from tests.pages import factories

EVIL = "<script>alert(1)</script>"


def call(answer: str, failure: str | None = None, **usage: Any) -> Call:
    question = Question(
        (Message("system", "You write kernels."), Message("user", f"Write one. {EVIL}")), "write 4.0", 0.6
    )
    return Call("served", question, "I weigh it.", answer, failure is None, Usage(2.0, "served", **usage), failure)


def test_a_page_holds_no_long_text_until_it_is_opened(ada: Client, world: dict[str, Any]) -> None:
    run = world["live"]
    factories.speak(run, "coder", 4, "writes v5", "Five lines.", "a line nobody sees\n" * 5)
    page = ada.get(f"/runs/{run.pk}/").content.decode()
    assert "a line nobody sees" not in page and "all it said · 6 lines" in page
    assert "a line nobody sees" in ada.get(f"/runs/{run.pk}/said/{run.last_seq}/").content.decode()


def test_the_prompt_and_each_call_are_shown_escaped_with_what_they_took(ada: Client, world: dict[str, Any]) -> None:
    run, step = world["live"], StepKey(4, 0, "write")
    purse = exchanges.KeptCalls(OpenPurse(), run.pk, lambda: step)
    purse.settle("", call("", "Time-out: nothing came.", tokens_in=10, tokens_out=0, estimated=True))
    purse.settle("", call("```python```", tokens_in=1200, tokens_out=300, cost_usd=0.0123))
    usage = {
        "seconds": 4.0,
        "model": "served",
        "tokens_in": 1210,
        "tokens_out": 300,
        "cost_usd": None,
        "estimated": True,
    }
    factories.say(
        run, "step_ended", "Written.", agent="coder", step=str(step), iteration=4, data={"text": "x", "usage": usage}
    )
    page = ada.get(f"/runs/{run.pk}/").content.decode()
    assert "≈ 1.51 K tok · cost unknown (estimated)" in page
    said = ada.get(f"/runs/{run.pk}/said/{run.last_seq}/").content.decode()
    assert (
        said.index("Call 1") < said.index("Time-out: nothing came.") < said.index("Call 2") < said.index("```python```")
    )
    assert "You write kernels." in said and "temperature 0.6" in said and "1.50 K tok · $0.01" in said
    assert EVIL not in said and "&lt;script&gt;" in said


def test_what_is_asked_outside_a_step_is_paid_and_not_kept(world: dict[str, Any]) -> None:
    exchanges.KeptCalls(OpenPurse(), world["live"].pk, lambda: None).settle("", call("no"))
    assert not Exchange.objects.exists()


def test_a_models_thinking_is_folded_and_a_kept_prompt_missed(ada: Client, world: dict[str, Any]) -> None:
    run = world["live"]
    text = "<think>\nlong and winding\n</think>\n\nThe answer."
    usage = {"seconds": 4.0, "model": "served", "tokens_in": 5, "tokens_out": 5, "cost_usd": 0.0}
    factories.say(
        run, "step_ended", "Said.", agent="coder", step="9.0.write.0", iteration=4, data={"text": text, "usage": usage}
    )
    said = ada.get(f"/runs/{run.pk}/said/{run.last_seq}/").content.decode()
    assert "<summary>thinking</summary>" in said and "The answer." in said and "<think>" not in said
    assert "The prompt was not kept" in said


def test_an_advice_that_nothing_followed_is_not_said_to_be_tried_once_the_run_is_over(
    ada: Client, world: dict[str, Any]
) -> None:
    for run, says in ((world["live"], "being tried"), (world["done"], "not tried")):
        factories.advise(run, 9, 4, None)
        assert says in ada.get(f"/runs/{run.pk}/part/advice/").content.decode()
