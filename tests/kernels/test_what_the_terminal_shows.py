"""What a person reads in a terminal: the verdict first, figures with units, nothing invented where nothing was measured."""

from __future__ import annotations

from apps.kernels.cli import evaluation_text, hosting, inspecting
from apps.kernels.cli.tables import quantity, scaled, table
from apps.kernels.evaluation import (
    Build,
    Correctness,
    Evaluation,
    Outcome,
    Policy,
    Rejection,
    Robustness,
    SpeedUp,
    Tier,
    Time,
    Timing,
    Verdict,
)
from apps.kernels.facts import ProblemFacts
from apps.kernels.machine import Bandwidth, Cache, Ceilings, HostReport, Isolation

HOST = HostReport(
    cpu_model="A processor",
    cores=2,
    vector_bits=256,
    memory_bytes=8 << 30,
    caches=(Cache(1, 32 << 10, 1),),
    devices=(),
    toolchains={"g++": "12.2.0"},
    torch="2.13.0",
    ceilings=Ceilings(),
    isolation=(Isolation("network", True, "namespace"), Isolation("another user", False, "same user as the judge")),
    isolation_level="partial",
    counters=False,
    counters_detail="no PMU",
    environment={"ceilings_unavailable": "no C++ compiler is installed"},
)


def test_a_correct_candidate_s_verdict_comes_first() -> None:
    speedup = SpeedUp(2.0, (1.9, 2.1), decision_interval=(1.85, 2.15), level=0.999, margin=0.01, aa=1.001)
    timing = Timing(
        Time(4.0, (3.9, 4.1)), Time(3.0, (2.9, 3.1)), Time(2.0, (1.9, 2.1)), speedup, outcome=Outcome.FASTER
    )
    evaluation = Evaluation(
        Verdict.CORRECT,
        Policy.KERNEL,
        Tier.FULL,
        timing=timing,
        correctness=Correctness(9, 9, 1e-7, 1e-6),
        seconds=31.0,
    )
    text = evaluation_text.described(evaluation)
    assert text.splitlines()[0] == "correct, faster, 2.00×  (policy kernel, full)"
    assert "decided at 99.9%: 1.850 – 2.150 against a margin of 1.0%" in text
    assert "9 of 9 passed, largest error 1e-07 of 1e-06 allowed" in text


def test_what_lies_beyond_the_promise_holds_is_specialised_or_was_not_tried() -> None:
    rows = (
        Robustness("not a number", True),
        Robustness("strides", False, "expanded: wrong: 8 of 8 elements are off"),
        Robustness("shapes", False, "no constant of the module sizes the inputs", tried=False),
    )
    text = evaluation_text.described(Evaluation(Verdict.CORRECT, Policy.KERNEL, Tier.FULL, robustness=rows))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "not a number holds" in lines
    assert "strides specialised expanded: wrong: 8 of 8 elements are off" in lines
    assert "shapes not tried no constant of the module sizes the inputs" in lines


def test_a_rejection_names_rule_and_line_and_shows_no_time() -> None:
    rejection = Rejection("torch computes", "line 12", "torch.relu runs in a call; compute it in a kernel of your own")
    text = evaluation_text.described(Evaluation(Verdict.REJECTED, Policy.KERNEL, Tier.QUICK, rejections=(rejection,)))
    assert text.startswith("rejected  (policy kernel, quick)")
    assert "line 12" in text and "torch.relu" in text
    assert "×" not in text


def test_a_failed_build_shows_what_the_compiler_said() -> None:
    detail = "kernel.cpp:3: error: expected ';'"
    evaluation = Evaluation(Verdict.BUILD_FAILED, Policy.KERNEL, Tier.QUICK, detail=detail, build=Build(0.4, detail))
    assert detail in evaluation_text.described(evaluation)


def test_ceilings_that_were_not_measured_say_why() -> None:
    text = hosting.described(HOST)
    assert "not measured: no C++ compiler is installed" in text
    assert "Isolation: partial" in text and "same user as the judge" in text


def test_bandwidth_is_shown_by_mix_threads_and_working_set() -> None:
    rows = tuple(
        Bandwidth(mix, size, threads, rate)
        for mix, size, threads, rate in (
            ("copy", 1 << 20, 1, 90.4),
            ("copy", 1 << 26, 1, 20.0),
            ("read", 1 << 20, 2, 200.0),
        )
    )
    from dataclasses import replace

    text = hosting.described(replace(HOST, ceilings=Ceilings({"fp32_all": 236.3}, rows)))
    lines = [line.split() for line in text.splitlines()]
    assert ["mix", "threads", "1.05", "MB", "67.1", "MB"] in lines
    assert ["copy", "1", "90", "20"] in lines
    assert ["read", "2", "200", "–"] in lines


def test_a_refused_problem_says_so_and_no_more() -> None:
    assert (
        inspecting.described(ProblemFacts(refusal="Too large for this host."))
        == "Can't be judged. Too large for this host."
    )


def test_numbers_carry_their_unit() -> None:
    assert scaled(33_554_432, "B") == "33.6 MB"
    assert scaled(None, "B") == quantity(None, "ms") == "–"
    assert quantity(1962.4, "us") == "1,962 us"
    assert table([("a", "1"), ("bb", "2")], ("x", "y")).splitlines()[1] == "  --  -"
