"""What a problem's own checks can tell: wrong answers and lower precision are tried on them before any candidate is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from apps.kernels import strength
from apps.kernels.evaluation import IMPRECISE, JUMPS, WEAK
from apps.kernels.inside.examining import examine
from apps.kernels.inside.oracle import Oracle
from apps.kernels.inspect import inspect
from apps.kernels.jail import Zygote
from apps.kernels.plain import from_plain
from apps.kernels.strength import QUICK, UNUSED, Strength, keep_strength, kept_strength, least_share

Examine = Callable[..., Strength]
HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"


def problem(forward: str, inputs: str = "torch.randn(64, 256)", init: str = "pass", arguments: str = "x") -> str:
    return (
        f"{HEAD}class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {init}\n"
        f"    def forward(self, {arguments}):\n        {forward}\n"
        f"def get_inputs(): return [{inputs}]\ndef get_init_inputs(): return []\n"
    )


@pytest.fixture
def examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Examine:
    """Examines a problem's source in this process: it is the tests' own."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def made(source: str, seconds: float = 20.0) -> Strength:
        channel = SimpleNamespace(files=())
        oracle = Oracle(channel, {"source": source, "seed": 3, "threads": 1})  # type: ignore[arg-type]
        oracle.open()
        return from_plain(Strength, examine(oracle, seconds))

    return made


SOUND = {
    "element-wise": problem("return x / (1 + x.abs())"),
    "soft-max": problem("return torch.softmax(x, 1)"),
    "a norm": problem("return self.n(x)", init="self.n = nn.LayerNorm(256)"),
    "a sum of rows": problem("return x.sum(1)", "torch.rand(128, 2048)"),
    "a product with weights": problem("return self.l(x)", init="self.l = nn.Linear(256, 128)"),
    "a product": problem("return a @ b", "torch.randn(64, 256), torch.randn(256, 64)", arguments="a, b"),
    "a diagonal product": problem("return torch.diag(d) @ b", "torch.randn(128), torch.randn(128, 128)", arguments="d, b"),
    "scores of queries and keys": problem(
        "return torch.softmax(q @ k.transpose(-1, -2) / 8, -1)", "torch.randn(4, 64, 64), torch.randn(4, 64, 64)",
        arguments="q, k",
    ),
    "a convolution": problem("return torch.relu(self.c(x))", "torch.randn(2, 8, 16, 16)", "self.c = nn.Conv2d(8, 8, 3)"),
    "a scan": problem("return x.cumsum(1)"),
    "a place in a row": problem("return x.argmax(1)", "torch.randn(512, 1000)"),
    "half precision": problem("return x * torch.sigmoid(x)", "torch.randn(64, 256, dtype=torch.bfloat16)"),
    "rows of one value": problem("return x.mean(1, keepdim=True).expand(64, 256) * 1.0"),
    "the largest of all": problem("return x.max()"),
    "rows looked up": problem("return w[i]", "torch.randn(100, 64), torch.randint(0, 100, (256,))", arguments="w, i"),
}  # fmt: skip


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_problem_is_not_called_weak(name: str, examined: Examine) -> None:
    found = examined(SOUND[name])
    assert found.complete and found.refusal is None
    assert found.weak == ()
    assert found.imprecise == (), "the problem in fewer bits fails the probes"
    assert set(QUICK) <= set(found.quick)
    assert "zeros" in found.tried and len(found.tried) >= 6


@pytest.mark.parametrize(
    ("source", "passing"),
    [
        (problem("return torch.relu(x.clamp(-3, 3) - 100)"), "zeros would pass"),
        (problem("return torch.softmax(x.sum(1, keepdim=True), 1)"), "a constant would pass"),
        (problem("return x + 1e-9 * y", "torch.randn(64, 64), torch.randn(64, 64)", arguments="x, y"), "ignores input 1"),
        (problem("return x * (1 + 1e-9 * x)"), "input 0 itself would pass"),
        (problem("return x + 1e-9 * self.b", init="self.b = nn.Parameter(torch.ones(256))"), "ignores the weights"),
        (problem("return (x * 0 + 7).mean()"), "the answer to other inputs would pass"),
        (problem("return 1e-7 * x.tanh() + x.tanh().abs().mean(1, keepdim=True)"), "each row's mean of the right values"),
    ],
    ids=["always zero", "one of one", "hardly an input", "itself", "hardly weights", "constant", "means"],
)  # fmt: skip
def test_a_weak_problem_says_what_would_pass(source: str, passing: str, examined: Examine) -> None:
    found = examined(source)
    assert any(passing in reason for reason in found.weak), found
    (note,) = (note for note in found.notes() if note.name == WEAK)
    assert passing in note.detail
    assert [row.name for row in found.robustness() if row.of_problem and not row.holds].count(WEAK) == 1


@pytest.mark.parametrize(
    ("source", "level"),
    [
        (problem("return (x > 0).float()"), "bfloat16's mantissa"),
        (problem("return (x.clamp(-4, 4) * 0.001).round() + 1"), "TF32's mantissa"),
    ],
)
def test_where_fewer_bits_give_the_same_precision_is_not_provable(source: str, level: str, examined: Examine) -> None:
    found = examined(source)
    assert any(level in passing for passing in found.imprecise)
    assert IMPRECISE in {note.name for note in found.notes()}


def test_rounding_errors_that_average_out_are_caught_where_they_all_go_the_same_way(examined: Examine) -> None:
    """Fewer bits in a long sum of random numbers hardly show; in numbers that all round the same way they do."""
    found = examined(problem("return x.mean(1)", "torch.rand(4, 1 << 17)"))
    assert found.imprecise == ()


def test_stronger_inputs_join_the_checks_where_they_catch_more(examined: Examine) -> None:
    """As it is drawn this clamp never cuts; only larger values tell it from the input itself."""
    found = examined(problem("return x.clamp(-9, 9)", "torch.rand(64, 256)"))
    assert found.weak == ()
    assert found.quick[: len(QUICK)] == QUICK and len(found.quick) > len(QUICK)
    assert set(found.quick) <= set(found.full)


def test_what_makes_outputs_jump_is_known(examined: Examine) -> None:
    found = examined(problem("return torch.where(self.l(x) > 0, 1.0, -1.0)", init="self.l = nn.Linear(256, 256)"))
    assert found.jumps and 0 <= found.left_out < 0.02
    assert JUMPS in {note.name for note in found.notes()}
    assert not examined(SOUND["a convolution"]).jumps


def test_a_problem_far_from_float64_everywhere_is_refused(examined: Examine) -> None:
    found = examined(problem("for _ in range(30): x = torch.sin(50 * x)\n        return x"))
    assert found.refusal is not None and "float64" in found.refusal


@pytest.mark.parametrize(
    ("source", "shares"),
    [
        (SOUND["a product"], [1.0, 1.0]),
        (problem("return x[:, ::2] * 2"), [0.5]),
        (
            problem("return torch.triu(a) @ b", "torch.randn(32, 32), torch.randn(32, 32)", arguments="a, b"),
            [33 / 64, 1.0],
        ),
        (problem("return x + 0 * y", "torch.randn(64, 64), torch.randn(64, 64)", arguments="x, y"), [1.0, 0.0]),
        (problem("return torch.diagonal(x).clone()", "torch.randn(128, 128)"), [1 / 128]),
    ],
    ids=["all", "half", "a triangle", "one not at all", "a diagonal"],
)
def test_the_floor_counts_only_elements_that_matter(source: str, shares: list[float], examined: Examine) -> None:
    assert examined(source).dependence == pytest.approx(shares, abs=1e-6)


def test_elements_without_a_derivative_are_seen_by_changing_them(examined: Examine) -> None:
    (share,) = examined(problem("return x.argmax(1)", "torch.randn(16, 32)")).dependence
    assert 0.8 < share <= 1.0
    assert examined(problem("return x[:, :1].argmax(0)", "torch.randn(16, 32)")).dependence[0] <= 1 / 16


def test_the_least_share_never_says_more_than_was_seen() -> None:
    assert least_share(0, 64) == 0.0
    assert least_share(64, 64) == pytest.approx(0.01 ** (1 / 64), abs=1e-6)
    assert least_share(1, 4) < 0.01
    assert least_share(32, 64) < 0.5


def test_an_input_that_nothing_depends_on_is_said_and_blames_nobody(examined: Examine) -> None:
    found = examined(problem("return x * 2", "torch.randn(64, 64), torch.randn(8)", arguments="x, y"))
    assert found.unused == (1,) and found.weak == ()
    assert UNUSED in {note.name for note in found.notes()}


def test_work_as_written_is_counted(examined: Examine) -> None:
    assert examined(SOUND["a product"]).flops == 2 * 64 * 256 * 64


def test_out_of_time_says_so(examined: Examine) -> None:
    found = examined(SOUND["a product"], seconds=0.0)
    assert not found.complete and found.weak == () and found.imprecise == ()
    assert "partly tested" in {note.name for note in found.notes()}


def test_of_a_mean_over_many_a_kept_answer_is_told_by_other_numbers(examined: Examine) -> None:
    loss = "return torch.clamp(1 - x * y, min=0).mean()"
    inputs = "torch.randn(1024, 2048), torch.randint(0, 2, (1024, 1)).float() * 2 - 1"
    found = examined(problem(loss, inputs, arguments="x, y"))
    assert found.weak == () and found.alike == "large"
    assert examined(SOUND["soft-max"]).alike == "as given"


def test_it_is_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRAGMA_MEASUREMENTS", str(tmp_path))
    keep_strength(Strength(weak=("zeros would pass",)), "source", "2.13")
    assert kept_strength("source", "2.13") == Strength(weak=("zeros would pass",))
    assert kept_strength("source", "2.14") is None
    assert kept_strength("source ", "2.13") is None


@pytest.mark.parametrize("module", ["screening", "oracle", "counting", "values", "lowered"])
def test_what_other_checks_found_out_is_forgotten(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRAGMA_MEASUREMENTS", str(tmp_path / "kept"))
    shutil.copytree(Path(strength.__file__).with_name("inside"), tmp_path / "inside")
    shutil.copy(strength.__file__, tmp_path)
    monkeypatch.setattr(strength, "__file__", str(tmp_path / "strength.py"))
    strength._checks.cache_clear()
    try:
        keep_strength(Strength(), "source", "2.13")
        strength._checks.cache_clear()
        assert kept_strength("source", "2.13") == Strength()
        with (tmp_path / "inside" / f"{module}.py").open("a") as file:
            file.write("\nOWN_ERROR_FACTOR = 9.0\n")
        strength._checks.cache_clear()
        assert kept_strength("source", "2.13") is None
    finally:
        strength._checks.cache_clear()


def test_inspecting_shows_it_and_does_not_find_it_out_twice(
    zygote: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRAGMA_MEASUREMENTS", str(tmp_path))
    source = problem("return torch.relu(x.clamp(-3, 3) - 100)")
    news: list[str] = []
    first = inspect(source, zygote=zygote, observe=lambda progress: news.append(progress.message))
    assert any("testing the problem" in line for line in news)
    assert "zeros would pass every check" in next(quirk.detail for quirk in first.quirks if quirk.name == WEAK)
    news.clear()
    assert inspect(source, zygote=zygote, observe=lambda progress: news.append(progress.message)).quirks == first.quirks
    assert not any("testing the problem" in line for line in news)
