"""The policy's proof from program counters: whose code they lie in, and how much of a call that is."""

from __future__ import annotations

import ctypes
import os
from dataclasses import replace
from pathlib import Path

import pytest

from apps.kernels.evaluation import Policy
from apps.kernels.judge.borrowed import _libraries, borrowed
from apps.kernels.judge.policy import Caller, Evidence, classify, is_undecided, judge_evidence
from apps.kernels.judge.products import Learned, allowed, learned_from, pages

WORK = "/tmp"
TORCH = "/usr/lib/python3/site-packages/torch/lib/libtorch_cpu.so"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/tmp/ab/kernel.so", "own"),
        ("/tmp/ab/libtorch_cpu.so (deleted)", "own"),
        (TORCH, "torch"),
        ("/usr/lib/python3/site-packages/torch/_C.cpython-311-x86_64-linux-gnu.so", "torch"),
        ("/usr/lib/python3/site-packages/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so", "other"),
        ("/usr/lib/python3/site-packages/numpy.libs/libopenblas64.so", "other"),
        ("/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so", "python"),
        ("/usr/bin/python3.11", "python"),
        ("/usr/lib/x86_64-linux-gnu/libm.so.6", "runtime"),
        ("/usr/lib/libgomp.so.1", "openmp"),
        ("", "other"),
        ("/memfd:jit (deleted)", "other"),
    ],
)
def test_each_object_is_of_one_kind(path: str, kind: str) -> None:
    assert classify(path, WORK) == kind


def evidence(calls: int = 100, seconds: float = 0.2, products: int = 0, **samples: int) -> Evidence:
    return Evidence(samples, dict(samples), calls, 0.001, "perf_event_open", products=products, seconds=seconds)


def rules(found: Evidence, policy: Policy = Policy.KERNEL) -> list[str]:
    return [rejection.rule for rejection in judge_evidence(found, policy)]


def test_a_kernel_of_its_own_is_fine_with_torch_s_overheads_beside_it() -> None:
    assert rules(evidence(own=180, torch=3, python=12, runtime=5)) == []


def test_torch_that_does_a_fifth_of_the_work_is_refused() -> None:
    assert rules(evidence(own=160, torch=40)) == ["library computes"]


def test_another_library_counts_as_torch_does() -> None:
    assert rules(evidence(own=100, other=60)) == ["library computes"]


def test_threads_that_only_keep_busy_excuse_nothing() -> None:
    """64 cores of its own code spinning beside one thread of torch: what the call waits for is torch."""
    assert rules(evidence(own=64 * 200, torch=190, seconds=0.2)) == ["library computes"]


def test_few_samples_of_torch_s_overheads_are_luck() -> None:
    """Five samples in calls that lasted as long as eight: that they wait for torch isn't shown."""
    assert rules(evidence(own=40, torch=5, python=5, seconds=0.008, calls=40)) == []


def test_the_thread_that_is_called_can_t_hide_among_busy_ones() -> None:
    drowned = evidence(own=2000, torch=60, seconds=5.0)
    assert rules(drowned) == []
    assert rules(replace(drowned, caller=Caller(total=70, foreign=60))) == ["library computes"]
    assert rules(replace(drowned, caller=Caller(total=70, foreign=15))) == [], "a thread that waits for others' kernels"
    assert rules(replace(drowned, caller=Caller(total=12, foreign=12))) == [], "too few to say"


def test_the_library_s_products_are_the_library_s_under_its_policy_alone() -> None:
    assert rules(evidence(own=50, torch=150, products=145), Policy.LIBRARY) == []
    assert rules(evidence(own=50, torch=150, products=90), Policy.LIBRARY) == ["library computes"]
    assert rules(evidence(own=50, torch=150)) == ["library computes"]


def test_too_few_samples_say_nothing() -> None:
    assert rules(evidence(torch=30)) == []


def test_pages_of_code_are_told_by_object_and_place_in_it() -> None:
    objects = [(0x1000_0000, 0x2000_0000, TORCH), (0x5000_0000, 0x5001_0000, "/tmp/a/kernel.so"), (0x6000, 0x7000, "")]
    seen = pages([0x1000_5010, 0x1000_5FFF, 0x1100_0000, 0x5000_0010, 0x6010, -1], objects, WORK)
    assert seen == {(TORCH, 5): 2, (TORCH, 0x1000): 1, ("", 0): 1}
    assert allowed(seen, Learned(frozenset({(TORCH, 6)}))) == 2, "a page beside one that was seen"
    assert allowed(seen, Learned(frozenset({("", 0), (TORCH, 0x2000)}))) == 1
    assert allowed(seen, Learned()) == 0


def test_code_without_a_file_is_allowed_for_as_long_as_the_products_run_in_it() -> None:
    """A convolution that a library compiles as it runs takes no other code of that kind along."""
    seen, learned = {("", 0): 1000}, Learned(frozenset({("", 0)}), compiled=1e-4)
    a_second = 100 / 1e-3  # hundred calls, a sample a millisecond
    assert allowed(seen, learned, a_second) == 50
    assert allowed({("", 0): 12}, learned, a_second) == 12
    assert allowed(seen, Learned(learned.pages), a_second) == 1000, "how long they take was not seen"


def test_what_was_learned_from_few_samples_refuses_nobody() -> None:
    seen = {(TORCH, 5): 90, (TORCH, 900): 10}
    assert learned_from({(TORCH, 5): 200, (TORCH, 40): 2}).unseen == 0
    assert learned_from({(TORCH, 5): 2, (TORCH, 40): 1, (TORCH, 80): 1}).unseen == 0.5
    assert allowed(seen, learned_from({(TORCH, 5): 200, (TORCH, 40): 2})) == 90
    assert allowed(seen, learned_from({(TORCH, 5): 18, (TORCH, 80): 1, (TORCH, 90): 1})) == 100
    assert allowed(seen, Learned(unseen=1.0)) == 100, "the calls could not be sampled"
    assert allowed(seen, learned_from({})) == 0, "the calls could not be made"


def test_a_library_under_another_name_is_told_by_its_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of torch's Python bindings, mapped from the candidate's directory."""
    library = next(path for path in _libraries() if path.name == "libtorch_python.so")
    monkeypatch.setattr("apps.kernels.judge.borrowed._libraries", lambda: [library])
    data = library.read_bytes()
    memory = ctypes.create_string_buffer(data[8 << 20 : 12 << 20], 4 << 20)
    start = ctypes.addressof(memory)
    addresses = [start + offset for offset in range(1 << 20, 3 << 20, 1 << 18) for _ in range(3)]
    mine = f"{tmp_path}/kernel.so"
    objects = [(start, start + (4 << 20), mine)]
    assert borrowed(os.getpid(), addresses, objects, str(tmp_path), always=False) == ("kernel.so", "libtorch_python.so")
    own = ctypes.create_string_buffer(os.urandom(4 << 20), 4 << 20)
    start = ctypes.addressof(own)
    objects = [(start, start + (4 << 20), mine)]
    assert borrowed(os.getpid(), [start + (1 << 20), start + (2 << 20)], objects, str(tmp_path), always=False) is None
    small = [(start, start + (1 << 19), mine)]
    assert borrowed(os.getpid(), [start], small, str(tmp_path), always=False) is None, (
        "kernels are small, and nothing is searched"
    )


def test_too_few_samples_to_be_sure_ask_for_more() -> None:
    assert is_undecided(evidence(own=92, torch=22))  # a fifth, a twelfth surely
    assert not is_undecided(evidence(own=920, torch=220)), "surely too much"
    called = replace(evidence(own=285, torch=9), caller=Caller(20, 9))
    assert is_undecided(called), "the called thread seems to wait for a library, whatever others do beside it"
    assert not is_undecided(evidence(own=105, torch=9)), "less than a tenth as it seems"
    assert not is_undecided(evidence(own=92, torch=22, products=15)), "what products may do is no part of it"
    assert not is_undecided(evidence(calls=100_000, own=92, torch=22)), "no more than overheads may take"
    assert not is_undecided(evidence(own=20, torch=5)), "who shows nothing in ten seconds is left alone"
