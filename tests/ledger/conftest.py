"""A model of the team that leads to the scripted server, with its key kept encrypted."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from apps.agents.gateway.secret import Secret
from apps.hosts import outgoing, waiting
from apps.ledger import sealing, trials
from apps.ledger.models import KeySource, LanguageModel
from apps.runs import queue
from tests.agents_models.conftest import KEY, clock_of_calls, impatient, one_server, server
from tests.agents_models.server import ModelServer

__all__ = ["clock_of_calls", "impatient", "one_server", "server"]

MakeModel = Callable[..., LanguageModel]


@pytest.fixture(autouse=True)
def pragma_key(settings: Any) -> None:
    """As `make run` makes one."""
    settings.PRAGMA_KEY = "a-test-key-of-more-than-twenty-characters"
    settings.PRAGMA_OLD_KEYS = []


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The trials that workers were asked for; there is no broker."""
    numbers: list[int] = []
    monkeypatch.setattr(trials, "_send", numbers.append)
    return numbers


@pytest.fixture
def make_model(db: None, one_server: ModelServer) -> MakeModel:
    def make(name: str = "scripted", **columns: Any) -> LanguageModel:
        given: dict[str, Any] = {
            "model_id": "openai/scripted",
            "api_base": one_server.address,
            "key_source": KeySource.KEPT,
            "key_sealed": sealing.seal(Secret(KEY)),
            "context_tokens": 64_000,
            "usd_per_million_in": Decimal(2),
            "usd_per_million_out": Decimal(10),
            "silence_seconds": 5,
            "call_seconds": 20,
        }
        return LanguageModel.objects.create(name=name, **given | columns)

    return make


@pytest.fixture
def model(make_model: MakeModel) -> LanguageModel:
    return make_model()


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A waiting run looks at its job this often."""
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(waiting, "STOP_EVERY", 0.05)


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Everything that would have gone through the broker."""
    told: list[object] = []
    monkeypatch.setattr(outgoing, "_send", lambda *words, **options: told.append((words, options)) or True)
    monkeypatch.setattr(queue, "wake", lambda run_id: told.append(run_id))
    return told
