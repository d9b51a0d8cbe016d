"""Servers that are busy, slow, broken, silent or talkative: each ends in an answer or in a sentence that helps."""

from __future__ import annotations

import json
import os
import time
from email.utils import formatdate
from typing import Any

import pytest

from apps.agents.gateway.asking import Gateway
from apps.agents.gateway.faults import CallFailed, Fault
from apps.agents.gateway.probing import probe
from apps.agents.gateway.settings import ModelSettings
from apps.agents.ports import Stopped
from tests.agents_models.clock import Clock
from tests.agents_models.conftest import KEY
from tests.agents_models.server import ECHO, Reply
from tests.agents_models.test_a_model_answers import QUESTION, Accounts
from tests.patience import PATIENCE, until


def quiet(text: str) -> None:
    """Nobody listens."""


def test_a_busy_server_is_asked_again_when_it_said(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("slow down", misbehaviour="429", retry_after="1"), Reply("now"))
    said: list[str] = []
    answer = Gateway(settings_of()).ask(QUESTION, said.append)
    first, second = server.script.requests
    assert answer.text == "now"
    assert second.at - first.at >= 1.0
    assert "slow down" in said[0]
    assert "again in 1 s" in said[0]


def test_when_to_ask_again_may_be_a_date(server: Any, settings_of: Any) -> None:
    at = int(time.time() + 3)
    date = formatdate(at, usegmt=True)
    server.script.play(Reply("slow down", misbehaviour="429", retry_after=date), Reply("now"))
    assert Gateway(settings_of()).ask(QUESTION, quiet).text == "now"
    _, second = server.script.requests
    assert time.time() - (time.monotonic() - second.at) > at - 0.1


def test_a_server_that_asks_to_wait_for_too_long_is_not_waited_for(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("come back", misbehaviour="429", retry_after="3600"))
    with pytest.raises(CallFailed, match="asks to wait 3600 s"):
        Gateway(settings_of()).ask(QUESTION, quiet)
    assert len(server.script.requests) == 1


@pytest.mark.parametrize("kind", ["500", "503", "cut", "malformed", "error-event"])
def test_what_may_pass_is_asked_again(server: Any, settings_of: Any, kind: str) -> None:
    server.script.play(Reply(misbehaviour=kind), Reply("there"))
    assert Gateway(settings_of()).ask(QUESTION, quiet).text == "there"
    assert len(server.script.requests) == 2


def test_it_is_not_asked_for_ever(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("boom", misbehaviour="500"))
    with pytest.raises(CallFailed) as failed:
        Gateway(settings_of(tries=3)).ask(QUESTION, quiet)
    assert failed.value.fault is Fault.SERVER
    assert len(server.script.requests) == 3


@pytest.mark.parametrize("kind", ["cut", "malformed", "error-event", "hang"])
def test_a_broken_stream_keeps_what_came(server: Any, settings_of: Any, kind: str) -> None:
    server.script.play(Reply("half an answer", "thinking", misbehaviour=kind, body="overloaded"))
    answer = Gateway(settings_of(read_seconds=0.7)).ask(QUESTION, quiet)
    assert (answer.text, answer.reasoning, answer.complete) == ("half an answer", "thinking", False)
    assert answer.why_cut
    assert answer.usage.estimated
    assert len(server.script.requests) == 1


def test_a_silent_server_times_out_by_silence(server: Any, settings_of: Any) -> None:
    server.script.play(Reply(misbehaviour="deaf"))
    with pytest.raises(CallFailed, match=r"Time-out: nothing came .* for 0\.5 s") as failed:
        Gateway(settings_of(read_seconds=0.5, tries=1)).ask(QUESTION, quiet)
    assert failed.value.usage.tokens_in


def test_a_trickle_times_out_by_the_wall(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("some", misbehaviour="trickle"))
    answer = Gateway(settings_of(wall_seconds=1.0)).ask(QUESTION, quiet)
    assert answer.text.startswith("some.")
    assert "not done after 1 s" in answer.why_cut
    wait_until_gone(server)


@pytest.mark.parametrize("kind", ["hang", "deaf", "trickle"])
def test_a_stop_ends_the_call_long_before_anybody_would_give_up(
    server: Any, settings_of: Any, clock_of_calls: Clock, kind: str
) -> None:
    server.script.play(Reply("so far", misbehaviour=kind))
    clock_of_calls.stopped = True
    accounts, said, stopped_at = Accounts(), list[str](), list[float]()

    def heed() -> None:
        if server.script.requests and (said or kind == "deaf"):
            stopped_at.append(time.monotonic())
            raise Stopped("Stopped by Ann.")

    with pytest.raises(Stopped) as stopped:
        Gateway(settings_of(), heed=heed, purse=accounts).ask(QUESTION, said.append)
    assert time.monotonic() - stopped_at[0] < PATIENCE / 2
    wait_until_gone(server)
    assert stopped.value.usage.tokens_in
    assert accounts.open == {}
    if kind != "deaf":
        assert stopped.value.text.startswith("so far")


def test_a_stop_ends_the_pause_between_tries(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("later", misbehaviour="429", retry_after="100"))
    said, stopped_at = list[str](), list[float]()

    def heed() -> None:
        if "again in 100 s" in "".join(said):
            stopped_at.append(time.monotonic())
            raise Stopped("Stopped by Ann.")

    with pytest.raises(Stopped):
        Gateway(settings_of(), heed=heed).ask(QUESTION, said.append)
    assert stopped_at[0] - server.script.requests[0].at < 100
    assert time.monotonic() - stopped_at[0] < PATIENCE / 2
    assert len(server.script.requests) == 1


def test_a_worker_that_leaves_ends_the_call_and_says_nothing(server: Any, settings_of: Any) -> None:
    class Leaving(Exception):
        pass

    def heed() -> None:
        if server.script.requests:
            raise Leaving

    server.script.play(Reply(misbehaviour="deaf"))
    with pytest.raises(Leaving):
        Gateway(settings_of(), heed=heed).ask(QUESTION, quiet)
    wait_until_gone(server)


@pytest.mark.parametrize(
    ("reply", "fault", "words"),
    [
        (Reply(f"bad key {ECHO}", misbehaviour="401"), Fault.KEY, "does not accept the key"),
        (Reply("no such model", misbehaviour="404"), Fault.NAME, "knows no model 'openai/scripted'"),
        (
            Reply("You exceeded your current quota", misbehaviour="429", retry_after="1"),
            Fault.QUOTA,
            "nothing left to spend",
        ),
        (Reply(misbehaviour="deaf"), Fault.TIME_OUT, "Time-out"),
        (Reply(misbehaviour="html"), Fault.EMPTY, "nothing that is an answer"),
        (Reply("", "thinking on and on", finish="length"), Fault.EMPTY, "still reasoning"),
    ],
)
def test_a_probe_says_what_is_wrong(server: Any, settings_of: Any, reply: Reply, fault: Fault, words: str) -> None:
    server.script.play(reply)
    found = probe(settings_of(), seconds=1.0 if fault is Fault.TIME_OUT else 20.0)
    assert found.fault is fault
    assert words in found.message
    assert len(server.script.requests) == 1


def test_a_probe_of_an_address_where_nothing_is(settings_of: Any) -> None:
    found = probe(settings_of(api_base="http://127.0.0.1:9/v1"), seconds=20.0)
    assert found.fault is Fault.ADDRESS
    assert "http://127.0.0.1:9/v1" in found.message


def test_a_probe_of_a_name_without_provider(settings_of: Any) -> None:
    assert probe(settings_of(name="scripted"), seconds=20.0).fault is Fault.NAME


@pytest.mark.parametrize("name", ["openai/gpt-4o", "anthropic/claude-sonnet-4-5"])
def test_a_probe_of_a_hosted_model_without_a_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [one for one in os.environ if one.startswith(("OPENAI_", "ANTHROPIC_"))]:
        monkeypatch.delenv(variable)
    found = probe(ModelSettings(name), seconds=20.0)
    assert found.fault is Fault.KEY
    assert "none is set" in found.message


def test_a_probe_that_goes_well(server: Any, settings_of: Any) -> None:
    server.script.play(Reply("ready"))
    found = probe(settings_of())
    assert found.well
    assert found.first_text_seconds is not None


@pytest.mark.parametrize("kind", ["401", "500", "429", "error-event", "html", "cut", ""])
def test_an_echoed_key_is_seen_nowhere(server: Any, settings_of: Any, kind: str, capfd: Any, caplog: Any) -> None:
    text = f"your key is {ECHO}, Authorization: Bearer {ECHO}"
    body = text if kind == "error-event" else json.dumps({"error": {"message": text}})
    server.script.play(Reply(text, text, misbehaviour=kind, body=body, piece=7, retry_after="0"))
    accounts, said = Accounts(), list[str]()
    kept = ""
    try:
        answer = Gateway(settings_of(tries=2), purse=accounts).ask(QUESTION, said.append)
        kept = repr(answer)
    except CallFailed as failed:
        chain: BaseException | None = failed
        while chain is not None:
            kept += repr(chain) + repr(vars(chain))
            chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
    everything = "".join(said) + kept + repr(accounts.calls) + "".join(capfd.readouterr()) + caplog.text
    assert len(everything) > 100
    assert KEY not in everything
    assert KEY[:-4] not in everything


def wait_until_gone(server: Any) -> None:
    """The server sees the caller leave."""
    until(lambda: server.script.gone, "the connection is still open")
