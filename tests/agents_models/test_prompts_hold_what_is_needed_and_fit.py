"""A prompt says what a Coder needs, keeps within the model's context, and shows an example that is right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from apps.agents.words import Attempt, Brief, CannotWrite, History, Seed, Unwritten, Writing
from apps.agents.writers import questions
from apps.agents.writers.fitting import DoesNotFit, Keep, Section, fitted
from apps.agents.writers.prompts import NoPrompts, Prompts
from apps.agents.writers.reading import candidate_in, checked
from apps.kernels.evaluation import Language
from apps.kernels.machine import Bandwidth, Cache, Ceilings
from tests.agents.doubles import a_host, an_advice, an_evaluation
from tests.agents_models.world import a_kernel, a_model_assignment

HOST = replace(
    a_host(),
    caches=(Cache(1, 32768, 1), Cache(3, 1 << 25, 8)),
    toolchains={"g++": "12.2.0"},
    ceilings=Ceilings({"fp32_all": 236.0}, (Bandwidth("copy", 1 << 28, 2, 46.0),), 0.7, 2.0),
)
ASSIGNMENT = a_model_assignment(host=HOST, overrides={"batch_size": 8})
BEST = Attempt(
    1, 0, 0, 0, None, "builtin", Writing(a_kernel("correct 1.5"), "", ""), None, an_evaluation("correct 1.5")
)
HISTORY = History(
    (BEST,),
    hints=("Try tiles.",),
    best=1,
    unwritten=tuple(Unwritten(n, 0, 0, None, f"reason number {n}") for n in range(200)),
)


def whole(room: int = 10**6, history: History = HISTORY) -> str:
    brief = Brief(ASSIGNMENT, history, 1, 0, an_advice(history))
    return "\n".join(one.text for one in questions.to_write(brief, BEST, room))


@pytest.mark.parametrize(
    "said",
    [
        "class Model(nn.Module)", "16x64x64x64 float32", "constructor arguments: 1e-05", "batch_size = 8", "FLOP a byte",
        "2 cores, vectors of 512 bits", "L1 cache: 32 KiB", "236 GFLOP/s", "46 GB/s copied with plain stores", "g++: 12.2.0",
        "0.7 us", "# judged: correct 1.5", "1.50x", "reason number 199", "Try tiles.", "Allocate less.", "minor_faults is 200",
        'extern "C" void rms_norm', "torch.mm", "unified diff against it",
    ],
)  # fmt: skip
def test_a_coder_is_told_what_it_needs(said: str) -> None:
    assert said in whole()


def test_nothing_is_left_unfilled() -> None:
    assert "$" not in whole().replace("$CXX", "")


def test_a_prompt_keeps_within_its_room_and_old_failures_go_first() -> None:
    tight = whole(room=len(whole()) - 3000)
    assert len(tight) <= len(whole()) - 3000
    assert "reason number 199" in tight
    assert "reason number 3\n" not in tight
    assert "# judged: correct 1.5" in tight


def test_the_same_history_makes_the_same_prompt() -> None:
    assert whole(14000) == whole(14000)


def test_a_context_too_small_for_the_problem_says_so() -> None:
    with pytest.raises(CannotWrite, match="larger context"):
        whole(room=4000)


@pytest.mark.parametrize("room", range(0, 120, 7))
def test_fitting_never_exceeds_its_room(room: int) -> None:
    sections = [
        Section("must", "x" * 20, Keep.ALL),
        Section("end", "line\n" * 9, Keep.END, 1),
        Section("start", "line\n" * 9, Keep.START, 2),
        Section("none", "y" * 15, Keep.NOTHING, 3),
    ]
    if room < 20:
        with pytest.raises(DoesNotFit):
            fitted(sections, room)
        return
    texts = fitted(sections, room)
    assert sum(map(len, texts.values())) <= room
    assert texts["must"] == "x" * 20


def test_first_versions_of_several_slots_are_asked_for_by_different_plans() -> None:
    asked = {questions.to_write(Brief(ASSIGNMENT, History(), 1, slot), None, 10**6)[1].text for slot in range(4)}
    assert len(asked) == 4
    assert all("diff" not in one for one in asked)


def test_a_version_or_a_language_without_prompts_is_refused() -> None:
    with pytest.raises(NoPrompts, match="version '99'"):
        Prompts("99")
    with pytest.raises(NoPrompts, match="triton"):
        Prompts("1").house(Language.TRITON)
    with pytest.raises(NoPrompts):
        Prompts("../../writers")


def test_the_example_is_a_candidate_by_our_own_reading() -> None:
    house = Prompts("1").house(Language.CPP)
    assert candidate_in(house) == checked(_example())


def test_a_seed_is_no_example() -> None:
    assert Seed(a_kernel("correct 1"), "x").source not in Prompts("1").house(Language.CPP)


def _example() -> str:
    return Path("apps/agents/prompts/v1/example_cpp.txt").read_text()
