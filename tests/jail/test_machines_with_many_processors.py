"""What a machine of two processors never shows: many open descriptors, and many threads that all take processor time."""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack

import pytest

from apps.kernels.jail import Limits, Zygote
from apps.kernels.judge.session import Opened
from tests.patience import PATIENCE, until

SELECTS = 1024  # `select` takes no descriptor from here on
TWICE = """
channel.send({"up": True})
channel.receive()
channel.send({"up": False})
time.sleep(600)
"""
PROBLEM = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return x.abs()
def get_inputs(): return [torch.randn(4, 8)]
def get_init_inputs(): return []
"""


def test_a_jail_is_heard_however_many_descriptors_the_judge_has_open() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = SELECTS + 200
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"no more than {hard} descriptors may be open here")
    with ExitStack() as stack:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        while (opened := os.open("/dev/null", os.O_RDONLY)) < SELECTS:
            stack.callback(os.close, opened)
        stack.callback(os.close, opened)
        zygote = stack.enter_context(Zygote(bare=True))
        jailed = stack.enter_context(zygote.spawn("apps.kernels.inside.probe:run", {"code": TWICE}))
        assert jailed.channel.fileno() > SELECTS
        until(lambda: jailed.has_spoken)
        assert jailed.receive(PATIENCE) == {"up": True}
        assert not jailed.has_spoken
        assert jailed.ask({}, PATIENCE) == {"up": False}


def test_a_process_that_computes_may_use_all_its_threads_all_the_time() -> None:
    assert Limits.computing(1 << 30, 60.0, 128).cpu_seconds > 60 * 128
    assert Limits.computing(1 << 30, 60.0, 128).processes > 4 * 128  # torch's, OpenMP's and OpenBLAS's, and its helpers


def test_so_may_a_problem_s_oracle_and_the_comparer() -> None:
    with Zygote() as zygote:
        opened = Opened.of(zygote, PROBLEM, 100.0, threads=64)
        try:
            limits = {process.jailed.limits for process in (opened.oracle, opened.comparer)}
        finally:
            opened.close()
    assert all(one.cpu_seconds > 6400 for one in limits)
