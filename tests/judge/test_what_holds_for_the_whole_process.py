"""Rounding and subnormal numbers, switched for a whole process: noticed, also from outside, and without effect on others."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from apps.kernels.evaluation import EvaluationRequest
from apps.kernels.jail import Zygote
from apps.kernels.jail import freeze as ice
from apps.kernels.judge import correctness
from apps.kernels.judge.checking import runner_for_checks
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.process_state import USUAL, judge_control_word, judge_process_state
from apps.kernels.judge.runner import Runner
from apps.kernels.judge.session import Session
from apps.kernels.profile.control_word import control_word, in_words

from .house import swish

SWISH = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return x * torch.sigmoid(x)
def get_inputs(): return [torch.randn(32, 512)]
def get_init_inputs(): return []
"""
SWITCHES = """
#include <cfenv>
#include <omp.h>
#include <xmmintrin.h>
extern "C" void turn() { std::fesetround(FE_UPWARD); }
extern "C" void flush() { _mm_setcsr(_mm_getcsr() | 0x8000); }
extern "C" void zeros() { _mm_setcsr(_mm_getcsr() | 0x0040); }
extern "C" void others() {
#pragma omp parallel
  if (omp_get_thread_num()) std::fesetround(FE_UPWARD);
}
"""
DENIED = """
import sys
state = sys.modules["apps.kernels.inside.process_state"]
state.changed = lambda before, after: {}
"""


def switching(call: str, more: str = "") -> str:
    body = f"y = torch.empty_like(x)\nLIB.swish(P(x), P(y), N(x.numel()))\n{call}\nreturn y\n"
    return swish(body, c=SWITCHES, more=more)


@contextmanager
def called(zygote: Zygote, source: str) -> Iterator[tuple[Session, Findings, Runner]]:
    """A runner of it after some calls, standing still."""
    request = EvaluationRequest(SWISH, source, profile=False)
    with Session(request, SWISH, zygote, lambda _progress: None) as session:
        session.oracle.draw(0)
        session.oracle.set_state()
        with runner_for_checks(session, first=True) as runner:
            correctness.once(session, runner, "as given")
            yield session, Findings(request), runner


def can_look() -> bool:
    """Whether this host lets a process read its child's registers."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"])
    try:
        return control_word(child.pid) is not None
    finally:
        child.kill()
        child.wait()


def test_the_register_is_told_in_the_words_of_the_report() -> None:
    assert in_words(0x1F80) == USUAL == {"rounding": "to nearest", "subnormal numbers": "kept"}
    assert [in_words(0x1F80 | mode << 13)["rounding"] for mode in (1, 2, 3)] == ["otherwise"] * 3
    assert in_words(0x9F80)["subnormal numbers"] == in_words(0x1FC0)["subnormal numbers"] == "flushed to zero"


@pytest.mark.skipif(not can_look(), reason="registers of other processes can't be read here")
def test_who_stands_still_goes_on_standing_still_when_it_was_looked_at() -> None:
    upward = "import ctypes, time; ctypes.CDLL(None).fesetround(0x800); print(flush=True); time.sleep(30)"
    child = subprocess.Popen([sys.executable, "-c", upward], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stdout.readline()
        assert (control_word(child.pid) or {})["rounding"] == "otherwise"
        ice.freeze(child.pid)
        assert (control_word(child.pid) or {})["rounding"] == "otherwise"
        ice.freeze(child.pid)  # returns at once where it stands still
        assert set(ice.thread_states(child.pid)) <= set("Tt")
        ice.thaw(child.pid)
        ctypes.CDLL(None).usleep(20_000)
        assert "T" not in ice.thread_states(child.pid)
    finally:
        child.kill()
        child.wait()


@pytest.mark.judge
@pytest.mark.parametrize(
    ("call", "what"), [("LIB.turn()", "rounding"), ("LIB.flush()", "subnormal"), ("LIB.zeros()", "subnormal")]
)
def test_a_switch_is_noticed_and_reaches_no_other_process(zygote: Zygote, call: str, what: str) -> None:
    with called(zygote, switching(call)) as (session, findings, runner):
        with pytest.raises(CandidateFailed, match=what) as caught:
            judge_process_state(session, findings, runner)
        assert [one.rule for one in findings.failed(caught.value).rejections] == ["process state"]
        for other in (session.oracle.jailed, session.comparer.jailed):
            assert control_word(other.pid) in (USUAL, None)


@pytest.mark.judge
@pytest.mark.skipif(not can_look(), reason="registers of other processes can't be read here")
@pytest.mark.parametrize("call", ["LIB.turn()", "LIB.flush()", "LIB.zeros()"])
def test_it_is_seen_from_outside_where_the_process_denies_it(zygote: Zygote, call: str) -> None:
    with called(zygote, switching(call, DENIED)) as (session, findings, runner):
        with pytest.raises(CandidateFailed, match="whole process"):
            judge_process_state(session, findings, runner)
        with pytest.raises(CandidateFailed):
            judge_control_word(session, runner)


@pytest.mark.judge
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there are no other threads")
def test_rounding_in_the_threads_that_torch_computes_with_is_noticed(zygote: Zygote) -> None:
    with called(zygote, switching("LIB.others()")) as (session, findings, runner):
        with pytest.raises(CandidateFailed, match="rounding"):
            judge_process_state(session, findings, runner)


@pytest.mark.judge
def test_who_changes_nothing_is_let_alone(zygote: Zygote) -> None:
    with called(zygote, switching("pass")) as (session, findings, runner):
        judge_process_state(session, findings, runner)
        judge_control_word(session, runner)
        assert not findings.rejections and not findings.robustness
