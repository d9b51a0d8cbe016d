"""manage.py optimize --coder MODEL: the same model, limits and accounts as a run of the server's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apps.ledger.models import Call, LanguageModel
from apps.runs.models import Run
from tests.agents.doubles import World
from tests.agents_models.conftest import KEY
from tests.agents_models.world import CommentDevice
from tests.conftest import SOFTSIGN
from tests.ledger.world import by_what_is_asked
from tests.runs.optimizing import judge_with, run_command

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def problem_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A problem, on a machine whose judge is scripted."""
    judge_with(monkeypatch, lambda: CommentDevice(World({})))
    path = tmp_path / "soft_sign.py"
    path.write_text(SOFTSIGN)
    return path


def test_a_model_optimises_from_the_command_line(server: Any, model: LanguageModel, problem_file: Path) -> None:
    server.script.play_by(by_what_is_asked)
    words = ["--coder", "scripted", "--iterations", "2", "--money", "2", "--tokens", "90000", "--temperatures", "0.3"]
    code, out, err = run_command(str(problem_file), *words, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["coder"], found["spend"]["tokens_in"]) == ("scripted", 300)
    assert found["spend"]["cost_usd"] == pytest.approx(0.0021)
    run = Run.objects.get()
    assert (run.money_limit_usd, run.tokens_limit, run.temperatures) == (2, 90000, [0.3])
    assert Call.objects.filter(run=run.pk).count() == 3
    assert KEY not in out + err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--coder", "nobody"], "There are: builtin, scripted"),
        (["--coder", "scripted", "--temperatures", "hot"], "Temperatures are numbers"),
        (["--coder", "scripted", "--money", "0"], "is used up"),
    ],
)
def test_what_can_not_be_is_bad_usage(model: LanguageModel, problem_file: Path, words: list[str], says: str) -> None:
    code, _, err = run_command(str(problem_file), *words)
    assert code == 2
    assert says in err
    assert not Run.objects.exists()
