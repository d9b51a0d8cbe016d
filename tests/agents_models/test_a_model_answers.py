"""What a model says is streamed as it comes, and what it takes is counted and set aside before."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from apps.agents.gateway.asking import Gateway
from apps.agents.gateway.faults import CallFailed, Fault
from apps.agents.gateway.provider import terms
from apps.agents.gateway.purse import Call, Largest, Message, OverLimit, Question
from apps.agents.gateway.settings import ModelSettings
from tests.agents_models.clock import Clock
from tests.agents_models.server import Reply, Request
from tests.patience import PATIENCE

QUESTION = Question((Message("system", "You write kernels."), Message("user", "Write one.")), "write", 0.5)


class Accounts:
    """A purse that writes everything down and has a limit."""

    def __init__(self, limit: float = 1e9) -> None:
        self.left = limit
        self.open: dict[str, float] = {}
        self.calls: list[Call] = []

    def reserve(self, model: str, purpose: str, largest: Largest) -> str:
        cost = largest.cost_usd or 0.0
        if sum(self.open.values()) + cost > self.left:
            raise OverLimit("Ann's limit of this month leaves too little for this call.")
        self.open[token := f"call {len(self.open)} {len(self.calls)}"] = cost
        return token

    def settle(self, token: str, call: Call) -> None:
        del self.open[token]
        self.left -= call.usage.cost_usd or 0.0
        self.calls.append(call)


def test_reasoning_and_answer_are_told_apart_and_said_as_they_come(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("The answer.", "First I think. ", piece=4))
    said: list[str] = []
    answer = Gateway(settings_of()).ask(QUESTION, said.append)
    assert (answer.text, answer.reasoning, answer.complete) == ("The answer.", "First I think. ", True)
    assert "".join(said) == "<think>\nFirst I think. \n</think>\n\nThe answer."
    assert len(said) > 4


def test_what_is_sent_is_what_was_asked(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("ok"))
    Gateway(settings_of(answer_tokens=1234)).ask(QUESTION, lambda text: None)
    (request,) = server.script.requests
    assert request.body["messages"] == [
        {"role": "system", "content": "You write kernels."},
        {"role": "user", "content": "Write one."},
    ]
    assert (request.body["temperature"], request.body["max_tokens"], request.body["model"]) == (0.5, 1234, "scripted")


def test_tokens_and_money_are_the_servers_count(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("ok", counts=(1000, 200)))
    usage = Gateway(settings_of()).ask(QUESTION, lambda text: None).usage
    assert (usage.tokens_in, usage.tokens_out, usage.estimated) == (1000, 200, False)
    assert usage.cost_usd == pytest.approx(1000 * 2e-6 + 200 * 10e-6)


def test_a_server_that_counts_nothing_is_estimated_and_said_to_be(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("word " * 700, counts=None))
    usage = Gateway(settings_of()).ask(QUESTION, lambda text: None).usage
    assert usage.estimated
    assert usage.tokens_out == 1000
    assert usage.cost_usd is not None


def test_an_unknown_price_stays_unknown(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("ok"))
    settings = settings_of(usd_per_million_in=None, usd_per_million_out=None)
    assert Gateway(settings).ask(QUESTION, lambda text: None).usage.cost_usd is None


def test_listed_prices_are_used_for_the_provider_itself_and_not_for_a_server_of_that_name() -> None:
    listed = terms(ModelSettings("openai/gpt-4o"))
    own = terms(ModelSettings("openai/gpt-4o", api_base="http://127.0.0.1:1/v1"))
    assert listed.usd_in is not None
    assert listed.context_tokens > 100_000
    assert own.usd_in is None


def test_no_key_of_the_environment_goes_to_an_address_that_has_none(
    server: Any, settings_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-somebody-elses-key")
    server.script.play(Reply("ok"))
    Gateway(settings_of(key=None)).ask(QUESTION, lambda text: None)
    assert "somebody" not in str(server.script.requests[0].headers)


def test_a_call_reserves_its_largest_cost_and_settles_what_it_took(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("ok", counts=(1000, 200)))
    accounts, settings = Accounts(limit=1.0), settings_of(answer_tokens=10_000)
    reserved: list[float] = []
    Gateway(settings, purse=accounts, heed=lambda: reserved.extend(accounts.open.values())).ask(
        QUESTION, lambda text: None
    )
    assert reserved[0] >= 10_000 * 10e-6
    assert accounts.open == {}
    assert accounts.left == pytest.approx(1.0 - 0.004)
    assert accounts.calls[0].answer == "ok"


def test_calls_side_by_side_cannot_overspend(server: Any, settings_of: Any) -> None:
    accounts, settings = Accounts(limit=0.15), settings_of(answer_tokens=10_000)
    accounts.reserve("openai/scripted", "another run", Largest(0.1))
    with pytest.raises(CallFailed, match="Ann's limit") as refused:
        Gateway(settings, purse=accounts).ask(QUESTION, lambda text: None)
    assert refused.value.fault is Fault.LIMIT
    assert server.script.requests == []


def test_one_silent_model_keeps_no_other_waiting(server: Any, settings_of: Any, clock_of_calls: Clock) -> None:
    def reply(request: Request) -> Reply:
        return Reply(misbehaviour="deaf") if request.prompt == "be silent" else Reply(f"to {request.prompt}")

    def ask(text: str) -> str:
        question = Question((Message("user", text),))
        try:
            return Gateway(settings_of(tries=1)).ask(question, lambda piece: None).text
        except CallFailed as failed:
            return str(failed.fault)

    server.script.play_by(reply)
    clock_of_calls.stopped = True
    asked = ["be silent", *(f"question {n}" for n in range(12))]
    with ThreadPoolExecutor(len(asked)) as threads:
        calls = {text: threads.submit(ask, text) for text in asked}
        assert [calls[text].result(PATIENCE) for text in asked[1:]] == [f"to {text}" for text in asked[1:]]
        assert not calls["be silent"].done()
        clock_of_calls.stopped = False
        assert calls["be silent"].result() == "time_out"


def test_an_answer_at_its_limit_of_tokens_is_said_to_be_cut(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("half an ans", finish="length"))
    answer = Gateway(settings_of()).ask(QUESTION, lambda text: None)
    assert not answer.complete
    assert "limit" in answer.why_cut
