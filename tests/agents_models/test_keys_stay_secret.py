"""Keys can't be shown, stored or streamed by accident."""

from __future__ import annotations

import base64
import json
import pickle

import pytest

from apps.agents.gateway.secret import ScrubbedStream, Scrubber, Secret, in_address, shown_address
from apps.agents.gateway.settings import ModelSettings
from apps.kernels.plain import to_plain

KEY = "sk-a/b+c d&e=fgh"
SCRUBBER = Scrubber([Secret(KEY)])


def test_a_secret_shows_as_stars() -> None:
    secret = Secret(KEY)
    assert f"{secret} {secret!r} {[secret]} {secret:>5}".count("***") == 4
    assert KEY not in repr(ModelSettings("openai/x", key=secret))


def test_a_secret_can_be_neither_pickled_nor_written_as_json() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Secret(KEY))
    with pytest.raises(TypeError):
        json.dumps(to_plain(ModelSettings("openai/x", key=Secret(KEY))))


@pytest.mark.parametrize(
    "form",
    [KEY, "sk-a%2Fb%2Bc%20d%26e%3Dfgh", base64.b64encode(KEY.encode()).decode(), json.dumps(KEY), KEY[:-4]],
)
def test_a_key_is_found_however_it_is_written(form: str) -> None:
    assert SCRUBBER.clean(f"before {form} after").startswith("before")
    assert form.strip('"') not in SCRUBBER.clean(f"before {form} after")


def test_credentials_nobody_told_of_are_left_out_of_errors() -> None:
    text = "GET https://x.org/v1?key=AIzaSyUnknown&alt=sse failed; 'Authorization': 'Bearer abc.def'"
    cleaned = SCRUBBER.clean(text)
    assert "AIza" not in cleaned
    assert "abc.def" not in cleaned
    assert "alt=sse" in cleaned


@pytest.mark.parametrize("size", range(1, 20))
def test_a_key_in_pieces_is_found_and_nothing_else_is_lost(size: int) -> None:
    stream, text = ScrubbedStream(SCRUBBER), f"the key {KEY} and sk-a/b is not one, sk-a/"
    pieces = [stream.feed(text[at : at + size]) for at in range(0, len(text), size)]
    assert "".join(pieces) + stream.flush() == "the key *** and sk-a/b is not one, sk-a/"


def test_an_environments_secrets_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "a-key-of-another-service")
    assert Scrubber([]).clean("it is a-key-of-another-service") == "it is ***"


def test_an_address_is_shown_without_what_it_carries() -> None:
    address = "https://ann:hunter22@models.org/v1?key=topsecret"
    assert shown_address(address) == "https://models.org/v1"
    assert Scrubber(in_address(address)).clean("hunter22 topsecret") == "*** ***"
