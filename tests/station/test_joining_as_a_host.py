"""The station's command line, and what its process must never hold."""

from __future__ import annotations

import subprocess
import sys

import pytest

from apps.station.__main__ import arguments


def test_without_a_broker_it_says_what_to_give(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    with pytest.raises(SystemExit) as left:
        arguments(["--name", "box"])
    assert left.value.code == 2
    assert "--broker" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["my box", "a" * 41, "", "ünder"])
def test_a_name_that_is_no_queue_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(["--broker", "redis://x", "--name", name])
    assert "no name for a host" in capsys.readouterr().err


def test_it_imports_neither_django_nor_torch() -> None:
    code = "import sys, apps.station.__main__, apps.station.bench; print(*sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"django.conf", "django.db", "torch", "litellm", "pragma_web"} & set(said)
    assert "celery" in said
