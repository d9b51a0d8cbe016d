"""One scripted server for all tests of a process, and settings that lead to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from apps.agents.gateway import asking
from apps.agents.gateway.secret import Secret
from apps.agents.gateway.settings import ModelSettings
from tests.agents_models.clock import Clock
from tests.agents_models.server import ModelServer

KEY = "sk-proj-9fQ2/vX+7LmTzK4wB8"  # characters that other encodings change

SettingsMaker = Callable[..., ModelSettings]


@pytest.fixture(scope="session")
def one_server() -> Iterator[ModelServer]:
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture
def server(one_server: ModelServer) -> ModelServer:
    one_server.script.play()
    return one_server


@pytest.fixture
def settings_of(server: ModelServer) -> SettingsMaker:
    def make(**changes: Any) -> ModelSettings:
        settings = ModelSettings(
            "openai/scripted",
            api_base=server.address,
            key=Secret(KEY),
            context_tokens=64_000,
            usd_per_million_in=2.0,
            usd_per_million_out=10.0,
            read_seconds=5.0,
            wall_seconds=20.0,
        )
        return replace(settings, **changes)

    return make


@pytest.fixture(autouse=True)
def clock_of_calls(one_server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Only the server's silence counts."""
    clock = Clock(one_server.script)
    clock.put(monkeypatch)
    return clock


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses that no server asked for would be most of a test's time."""
    monkeypatch.setattr(asking, "_FIRST_PAUSE", 0.05)
