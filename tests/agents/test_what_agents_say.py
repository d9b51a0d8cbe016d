"""Errors are read into what matters, figures into prose, and predictions are held against measurements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.agents import conductor, profiler, verifier
from apps.agents.figures import figure
from apps.agents.steps import reasoning
from apps.agents.steps.reasoning import Counsel
from apps.agents.words import Attempt, Evidence, History, Prediction, Usage, Writing
from apps.kernels.evaluation import Build, Correctness, Evaluation, Policy, Robustness, Tier, Trial, Verdict
from tests.agents.doubles import an_advice, an_evaluation

GCC = """In file included from /tmp/jail.x1/build/kernel.cpp:1:
/tmp/jail.x1/build/kernel.cpp: In function 'void f(const float*, float*, int64_t)':
/tmp/jail.x1/build/kernel.cpp:9:3: warning: unused variable 'k' [-Wunused-variable]
    9 |   int k = 0;
      |       ^
/tmp/jail.x1/build/kernel.cpp:12:16: error: 'expg' was not declared in this scope; did you mean 'exp'?
   12 |     out[i] = expg(in[i]);
      |                ^~~~
      |                exp
compilation terminated.
"""


def test_a_compilers_error_comes_with_the_line_it_shows_and_without_the_jails_directories() -> None:
    text = verifier.error_that_matters(GCC)
    assert text.splitlines()[0].startswith("kernel.cpp:12:16: error: 'expg' was not declared")
    assert "out[i] = expg(in[i]);" in text
    assert "warning" not in text and "/tmp" not in text


def test_a_flood_of_errors_is_cut_and_counted() -> None:
    flood = "\n".join(f"/b/k.cpp:{n}:1: error: no {n}" for n in range(500))
    lines = verifier.error_that_matters(flood).splitlines()
    assert len(lines) == verifier.LONGEST_ERROR + 1
    assert "no 0" in lines[0] and "500 errors" in lines[-1]


def test_of_a_traceback_the_error_is_kept() -> None:
    trace = 'Traceback (most recent call last):\n  File "c.py"\n    x = 1 / 0\nZeroDivisionError: division by zero'
    assert "ZeroDivisionError: division by zero" in verifier.error_that_matters(trace)


def test_a_loader_that_raised_is_summed_up_by_what_it_raised() -> None:
    log = (
        "it raised while being imported:\nCalledProcessError: Command '['g++']' returned non-zero exit status 1.\n"
        "  candidate.py:22 in <module>: LIB = load(SOURCE,\n  subprocess.py:571 in run: raise CalledProcessError(retcode"
    )
    found = Evaluation(Verdict.BUILD_FAILED, Policy.KERNEL, Tier.QUICK, build=Build(0.1, log))
    assert (
        verifier.summary(found)
        == "Does not build: CalledProcessError: Command '['g++']' returned non-zero exit status 1."
    )
    assert "candidate.py:22" in verifier.report(found)


def test_output_without_a_known_error_gives_its_end() -> None:
    assert verifier.error_that_matters("\n".join(map(str, range(100))), 3) == "97\n98\n99"


@pytest.mark.parametrize("verdict", list(Verdict))
def test_each_verdict_has_a_sentence_even_if_nothing_else_is_known(verdict: Verdict) -> None:
    text = verifier.summary(Evaluation(verdict, Policy.KERNEL, Tier.QUICK))
    assert text.endswith(".") and text[0].isupper()


def test_a_report_names_the_failed_check_with_error_and_tolerance() -> None:
    trial = Trial("rounding-up", "7", (4, 8), "float32", False, 0.5, 0.001, "first at [0, 3]")
    found = Evaluation(
        Verdict.INCORRECT,
        Policy.KERNEL,
        Tier.QUICK,
        correctness=Correctness(3, 2, 0.5, 0.001, (trial,)),
        robustness=(
            Robustness("strides", False, "Assumes contiguous inputs."),
            Robustness("shapes", False, "no time was left", tried=False),
        ),
    )
    report = verifier.report(found)
    assert "rounding-up (4x8 float32): error 0.5 where 0.001 is allowed" in report
    assert "Specialised: strides. Assumes contiguous inputs." in report and "shapes" not in report


def test_figures_are_told_with_units_and_beside_the_best_version() -> None:
    text = profiler.report(an_evaluation("correct 2.0"), an_evaluation("correct 1.0"))
    assert "2.00x (95%: 1.96 to 2.04)" in text
    assert "minor_faults: 100 faults (best version: 200 faults), from rusage" in text
    assert "Held back by page faults." in text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.834, "share", "83.4%"),
        (16_777_216, "B", "16.78 MB"),
        (640, "B", "640 B"),
        (41.23456, "GB/s", "41.23 GB/s"),
        (3.0, "", "3"),
    ],
)
def test_figures_are_written_as_people_write_them(value: float, unit: str, text: str) -> None:
    assert figure(value, unit) == text


def an_attempt(source: str, number: int) -> Attempt:
    writing = Writing(source, "", "", usage=Usage())
    return Attempt(number, 1, 0, 0, None, "scripted", writing, 1, an_evaluation(source))


def test_the_evidence_of_an_advice_reads_as_words_and_percent() -> None:
    evidence = (Evidence("share_of_roof", 0.01915, "share", "<", 0.9), Evidence("streaming_gain", 1.601, "x", ">", 1.1))
    counsel = Counsel(advice=replace(an_advice(History()), evidence=evidence))
    assert "share of roof is 1.92% (< 90%), streaming gain is 1.6× (> 1.1×)" in reasoning._says(counsel)[0]


@pytest.mark.parametrize(
    ("after", "held"), [("correct 1.25", True), ("correct 1.02", False), ("correct 4.0", False), ("incorrect", None)]
)
def test_a_prediction_holds_only_within_its_range(after: str, held: bool | None) -> None:
    advice = replace(an_advice(History(best=1)), number=1)
    holding = conductor.hold(advice, an_attempt("correct 1.0", 1), an_attempt(after, 2))
    assert holding.held is held


def test_an_advice_holds_only_if_every_comparable_prediction_does() -> None:
    faults = Prediction("minor_faults", 0.1, 0.0, 0.2)
    never_measured = Prediction("l2_misses", 0.1, 0.0, 0.2)
    advice = an_advice(History(best=1))
    both = replace(advice, expected=(*advice.expected, faults))
    unknown = replace(advice, expected=(never_measured,))
    before, after = an_attempt("correct 1.0", 1), an_attempt("correct 1.25", 2)
    assert conductor.hold(both, before, after).held is False
    assert conductor.hold(unknown, before, after).held is None
