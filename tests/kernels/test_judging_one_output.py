"""One output against its answer: how far off it may be, what indices may select, what is left out."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from apps.kernels.inside import draw_names, draws
from apps.kernels.inside.lowered import Level, Lowered, rounded
from apps.kernels.inside.outputs import Scores, judge
from apps.kernels.inside.reductions import Counting

EPS = 2.0**-23


def answers(exact: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return exact.double(), exact.float()


@pytest.fixture
def exact() -> torch.Tensor:
    return torch.randn(8, 1024, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_the_right_answer_passes_with_its_error(exact: torch.Tensor) -> None:
    found = judge(*answers(exact), exact.float(), 1)
    assert found["passed"] and found["near"] and found["error"] <= 1.2e-7


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_the_limit_follows_the_scale(exact: torch.Tensor, scale: float) -> None:
    true, own = answers(exact * scale)
    off = own.clone()
    off[3, 5] += float(own.abs().max()) * 30 * EPS
    found = judge(true, own, off, 1)
    assert not found["passed"] and found["wrong"] == 1 and "[3, 5]" in found["detail"]
    assert judge(true, own, own * (1 + 2 * EPS), 1)["passed"]


def test_a_longer_reduction_allows_more(exact: torch.Tensor) -> None:
    true, own = answers(exact)
    off = own + own.abs().max() * 100 * EPS
    assert not judge(true, own, off, 1)["passed"]
    assert judge(true, own, off, 1 << 18)["passed"]  # half of eps times 512


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_longer_reduction_allows_no_more_in_sixteen_bits(exact: torch.Tensor, dtype: torch.dtype) -> None:
    """Torch adds them in float32 and rounds once: a tenth of a sum can't be left out, however long it is."""
    own = exact.to(dtype)
    true = own.double()
    for terms in (1, 8192, 1 << 20):
        some = own.clone()
        some.view(-1)[::64] *= 1 + torch.finfo(dtype).eps
        assert judge(true, own, some, terms)["passed"]
        assert not judge(true, own, own * 0.9, terms)["passed"]


@pytest.mark.parametrize(
    ("call", "terms"),
    [
        (lambda x: torch.softmax(x, -1), 8),
        (lambda x: torch.log_softmax(x, 0), 6000),
        (lambda x: torch.cumsum(x, 1), 8),
        (lambda x: torch.nn.functional.layer_norm(x, (8,)), 8),
        (lambda x: torch.nn.functional.batch_norm(x, None, None, training=True), 6000),
        (lambda x: torch.nn.functional.group_norm(x, 2), 4),
        (lambda x: torch.linalg.vector_norm(x, dim=1), 8),
        (lambda x: x.sum(), 48000),
        (lambda x: x.T @ x, 6000),
    ],
)
def test_a_reduction_is_as_long_as_what_it_goes_along(call: Callable[[torch.Tensor], object], terms: int) -> None:
    with Counting() as counted:
        call(torch.randn(6000, 8))
    assert counted.longest == terms


def running_sum(terms: torch.Tensor) -> torch.Tensor:
    """One term after the other, in float32, as one first writes it."""
    total = torch.zeros(terms.shape[0])
    for column in terms.unbind(1):
        total = total + column
    return total


@pytest.mark.parametrize("how", ["all alike", "low bits", "heavy-tailed", "sparse"])
def test_a_plain_running_sum_is_right_where_its_errors_all_go_one_way(how: str) -> None:
    generator = torch.Generator().manual_seed(1)
    drawn = draws.reshape(torch.randn(500, 1024, generator=generator), how, generator)
    terms = drawn.abs() if how in ("all alike", "low bits") else torch.exp(drawn - drawn.amax(1, keepdim=True))
    true, own, got = terms.double().sum(1), terms.sum(1), running_sum(terms)
    assert judge(true, own, got, 1024, drifts=True)["passed"]
    for bits in (8, 11):
        low = rounded(terms, bits)
        lost = float(((low.double().sum(1) - true) / true).abs().max())
        if lost > 2.0**-13:
            assert not judge(true, own, low.double().sum(1).float(), 1024, drifts=True)["passed"]


def test_how_far_a_running_sum_may_drift_is_bounded(exact: torch.Tensor) -> None:
    true, own = answers(exact)
    peak = own.abs().max()
    assert judge(true, own, own + peak * 300 * EPS, 1024, drifts=True)["passed"]  # 512 of them are allowed
    assert not judge(true, own, own + peak * 300 * EPS, 1024)["passed"]
    assert not judge(true, own, own + peak * 300 * EPS, 160, drifts=True)["passed"]
    assert not judge(true, own, own + peak * 600 * EPS, 1 << 16, drifts=True)["passed"]


def test_nan_and_infinities_must_be_where_torch_has_them(exact: torch.Tensor) -> None:
    exact[0, 0], exact[0, 1], exact[0, 2] = math.nan, math.inf, -math.inf
    true, own = answers(exact)
    assert judge(true, own, own.clone(), 1)["passed"]
    for place, value in (((0, 0), 0.0), ((0, 1), -math.inf), ((0, 2), math.inf), ((4, 4), math.nan), ((0, 1), 3e38)):
        wrong = own.clone()
        wrong[place] = value
        assert not judge(true, own, wrong, 1)["passed"], place


def test_at_a_jump_neither_side_is_blamed_and_no_neighbour_profits(exact: torch.Tensor) -> None:
    true, own = answers(exact)
    jumps = torch.zeros(exact.shape, dtype=torch.bool)
    jumps[2, 7] = True
    other_side = own.clone()
    other_side[2, 7] += 1.0
    assert not judge(true, own, other_side, 1)["passed"]
    found = judge(true, own, other_side, 1, jumps=jumps)
    assert found["passed"] and found["left_out"] == 1
    abused = own.clone()
    abused[2, 7], abused[2, 8] = 1e30, own[2, 8] + 0.1  # a huge value there would widen its neighbours' limit
    assert not judge(true, own, abused, 1, jumps=jumps)["passed"]
    hidden = own.clone()
    hidden[2, 7] = math.nan
    assert judge(true, own, hidden, 1, jumps=jumps)["passed"]


def test_many_elements_at_jumps_make_a_trial_that_does_not_count(exact: torch.Tensor) -> None:
    true, own = answers(exact)
    found = judge(true, own, own, 1, jumps=torch.rand(exact.shape) < 0.1)
    assert not found["near"] and found["share"] > 0.05


def test_torch_far_from_float64_does_not_count(exact: torch.Tensor) -> None:
    true, _ = answers(exact)
    assert not judge(true, (true * 1.01).float(), true.float(), 1)["near"]


# -- indices -----------------------------------------------------------------------------------------------------------

ROWS = torch.tensor([[1.0, 3.0, 3.0 - 1e-9, 2.0], [5.0, 4.0, 5.0, 1.0]], dtype=torch.float64)
BEST = torch.tensor([1, 0])


def chosen(limit: float = 8 * EPS, **more: object) -> Scores:
    return Scores(ROWS, None, limit, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("picked", [[1, 0], [2, 0], [1, 2], [2, 2]])
def test_either_of_two_that_tie_may_be_selected(picked: list[int]) -> None:
    assert judge(BEST, BEST, torch.tensor(picked), 1, scores=chosen())["passed"]


@pytest.mark.parametrize("picked", [[0, 0], [1, 1], [3, 2], [1, -1], [1, 4], [1 << 40, 0]])
def test_a_worse_one_or_none_at_all_may_not(picked: list[int]) -> None:
    found = judge(BEST, BEST, torch.tensor(picked), 1, scores=chosen())
    assert not found["passed"] and found["wrong"] == 1


def test_several_of_a_row_are_judged_in_order_and_never_twice() -> None:
    values = torch.tensor([[4.0, 9.0, 7.0, 9.0]], dtype=torch.float64)
    right = torch.tensor([[1, 3, 2]])
    scores = Scores(values, -1, 8 * EPS)
    assert judge(right, right, torch.tensor([[3, 1, 2]]), 1, scores=scores)["passed"]
    assert not judge(right, right, torch.tensor([[1, 1, 2]]), 1, scores=scores)["passed"]
    assert not judge(right, right, torch.tensor([[1, 2, 3]]), 1, scores=scores)["passed"]
    unordered = Scores(values, -1, 8 * EPS, ordered=False)
    assert judge(right, right, torch.tensor([[2, 1, 3]]), 1, scores=unordered)["passed"]


def test_several_along_another_axis() -> None:
    table = torch.tensor([[4.0, 1.0], [9.0, 2.0], [7.0, 3.0]], dtype=torch.float64)  # three rows, selected by column
    right = torch.tensor([[1, 2], [2, 1]])
    scores = Scores(table.movedim(0, -1).reshape(2, 3), 0, 8 * EPS)
    assert judge(right, right, right, 1, scores=scores)["passed"]
    found = judge(right, right, torch.tensor([[1, 2], [2, 0]]), 1, scores=scores)
    assert not found["passed"] and "[1, 1]" in found["detail"]


def test_other_integers_are_exact_and_those_at_jumps_left_out() -> None:
    right = torch.arange(1000)
    off = right.clone()
    off[5] += 1
    assert not judge(right, right, off, 1)["passed"]
    jumps = right == 5
    found = judge(right, right, off, 1, jumps=jumps)
    assert found["passed"] and found["left_out"] == 1


# -- lower precision ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "dtype"), [(8, torch.bfloat16), (11, torch.float16)])
def test_rounding_to_fewer_bits_is_what_the_type_does(bits: int, dtype: torch.dtype) -> None:
    values = torch.randn(10_000, generator=torch.Generator().manual_seed(2))
    values = values.sign() * values.abs().clamp_min(0.01)
    assert torch.equal(rounded(values, bits), values.to(dtype).float())
    assert torch.equal(rounded(values.double(), bits).float(), values.double().to(dtype).float())
    odd = torch.tensor([math.inf, -math.inf, 0.0])
    assert torch.equal(rounded(odd, bits), odd)
    assert rounded(torch.tensor([math.nan]), bits).isnan().all()


def test_products_alone_lose_bits_where_only_they_should() -> None:
    a, b = torch.randn(32, 32), torch.randn(32, 32)
    with Lowered(Level("TF32 products", 11, True)) as lower:
        assert torch.equal(a + b, torch.add(a, b))
        assert torch.equal(a @ b, rounded(a, 11).matmul(rounded(b, 11)))
    assert lower.rounded == 2  # rounded operands are their own rounding: the second product changes nothing


def test_an_operation_in_place_still_writes_where_it_should() -> None:
    x = torch.ones(4)
    with Lowered(Level("bfloat16's mantissa", 8, False)):
        x.add_(torch.full((4,), 1.0 + 2.0**-12))
    assert torch.equal(x, torch.full((4,), 2.0))


# -- probes ------------------------------------------------------------------------------------------------------------


def test_low_bits_all_round_the_same_way() -> None:
    values = draws.reshape(torch.randn(4096), draw_names.LOW_BITS, torch.Generator())
    for bits in (8, 11):
        lost = (values - rounded(values, bits)) / values
        assert bool((lost > 0).all())
        assert float(lost.mean()) > 2.0**-bits / 4


@pytest.mark.parametrize("how", ["cancelling rows", "cancelling pairs"])
def test_leading_parts_of_products_cancel(how: str) -> None:
    """What operands of fewer bits give is then far off, while float32 is near."""

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ (b if how == "cancelling rows" else b.mT)

    generator = torch.Generator().manual_seed(3)
    a, b = (draws.reshape(torch.randn(64, 64), how, generator, index) for index in (0, 1))
    exact = product(a.double(), b.double())
    scale = float(exact.abs().max())
    assert scale < 0.05 * float(product(a.abs(), b.abs()).max())
    assert float((product(a, b).double() - exact).abs().max()) < 2.0**-10 * scale
    low = product(rounded(a, 11), rounded(b, 11)).double()
    assert float((low - exact).abs().max()) > 0.1 * scale


def test_each_output_has_the_length_of_its_own_sums() -> None:
    x = torch.randn(512, 256)
    with Counting() as counted:
        product, mean, rows = x * 2, (x * 2).mean(), x.sum(1) + 1
    assert [counted.of(tensor) for tensor in (product, mean, rows)] == [1, 512 * 256, 256]


def test_picking_elements_adds_nothing_up() -> None:
    x = torch.randn(512, 256)
    with Counting() as counted:
        found = (x[torch.arange(8)], x.amax(1), x[:, 0], torch.nn.functional.avg_pool1d(x, 4))
    assert [counted.of(tensor) for tensor in found][:3] == [1, 1, 1]


def test_places_along_a_short_axis_are_judged_against_their_own_kind() -> None:
    """A mean beside sums of fourth powers a million times as large."""
    x = torch.randn(512, 2048, generator=torch.Generator().manual_seed(1)).double() * 3
    true = torch.stack([x.mean(1), (x**4).sum(1)], 1)
    off = true.float()
    off[7, 0] += 0.01
    found = judge(true, true.float(), off, 2048)
    assert not found["passed"] and "[7, 0]" in found["detail"] and found["wrong"] == 1
    assert judge(true, true.float(), true.float(), 2048)["passed"]


def test_what_a_mask_leaves_is_judged_without_what_it_fills_in() -> None:
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(1)).double()
    true = x.masked_fill(torch.ones(64, 64, dtype=torch.bool).triu(1), -1e9)
    off = true.float()
    off[5, 3] += 0.01
    assert not judge(true, true.float(), off, 1)["passed"]
    assert judge(true, true.float(), true.float(), 1)["passed"]


def test_where_torch_only_passes_through_infinity_nobody_is_judged() -> None:
    true = torch.randn(8, 1024, generator=torch.Generator().manual_seed(1)).double()
    own = torch.full((8, 1024), torch.nan)
    assert not judge(true, own, true.float(), 1)["near"]


def test_a_long_mean_has_no_room_for_a_part_of_its_terms() -> None:
    true = torch.tensor(0.5, dtype=torch.float64)
    own = true.float()
    assert judge(true, own, own * (1 + 2.0**-15), 1 << 30)["passed"]
    assert not judge(true, own, own * (1 + 2.0**-13), 1 << 30)["passed"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_may_be_off_by_two_units(exact: torch.Tensor, dtype: torch.dtype) -> None:
    own, eps = exact.to(dtype), torch.finfo(dtype).eps
    true, peak = own.double(), float(own.abs().max())
    some, many = true.clone(), true.clone()
    some.view(-1)[::1024] += eps * peak
    many.view(-1)[::1024] += 4 * eps * peak
    assert judge(true, own, some.to(dtype), 1)["passed"]
    assert not judge(true, own, many.to(dtype), 1)["passed"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_all_errors_of_sixteen_bits_together_are_those_of_one_rounding(dtype: torch.dtype) -> None:
    weights, x = torch.randn(64, 256).to(dtype), torch.randn(32, 256).to(dtype)
    true = x.double() @ weights.double().T
    own, twice = true.to(dtype), (true.to(dtype).double() * 3).to(dtype).double() / 3
    assert judge(true, own, twice.to(dtype), 256)["passed"], "rounded two or three times on the way"
    scale = weights.double().abs().amax(1, keepdim=True) / 127
    in_bytes = (x.double() @ (torch.round(weights.double() / scale) * scale).T).to(dtype)
    found = judge(true, own, in_bytes, 256)
    assert not found["passed"]
    assert "taken together" in found["detail"] or dtype != torch.bfloat16


def test_an_output_in_double_is_judged_and_left_as_it_is() -> None:
    true = torch.randn(4096, dtype=torch.float64)
    own, got = true + 1e-16, true + 2e-16
    kept = own.clone(), got.clone()
    assert judge(true, own, got, 1)["passed"]
    assert torch.equal(own, kept[0]) and torch.equal(got, kept[1])
    assert not judge(true, own, got + 1e-9, 1)["passed"]


def test_an_infinite_answer_of_which_torch_makes_none_may_be_either() -> None:
    true = torch.ones(2048, dtype=torch.float64)
    true[7] = torch.inf
    own, got = true.float(), true.float()
    own[7] = torch.nan
    assert judge(true, own, got, 1)["passed"] and judge(true, own, own, 1)["passed"]
    got[7] = 5.0
    assert not judge(true, own, got, 1)["passed"]
    true[7], own[7] = 1e300, torch.inf
    assert not judge(true, own, got, 1)["passed"], "too large for float32 is infinite, not any number"
