"""Inputs as given but in a few elements, and other integers of the same range: what they keep, and what they change."""

from __future__ import annotations

import pytest
import torch

from apps.kernels.inside import draw_names, draws, integers


def generator(seed: int = 3) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("how", "least", "most"), [(draw_names.MOTTLED, 0.015, 0.05), (draw_names.SPIKED, 0.002, 0.006)]
)
def test_few_elements_differ_and_none_at_the_ends(how: str, least: float, most: float) -> None:
    given = torch.rand(512, 256, generator=generator(1))
    drawn = draws.reshape(given, how, generator())
    changed = (drawn != given).reshape(-1)
    assert least < changed.double().mean() < most
    assert not changed[:64].any() and not changed[-64:].any()


def test_a_mottled_tensor_stays_within_the_range_of_what_was_given() -> None:
    given = torch.rand(512, 256, generator=generator(1))
    drawn = draws.reshape(given, draw_names.MOTTLED, generator())
    assert drawn.min() == given.min() and drawn.max() == given.max()


def test_spikes_make_up_half_of_a_sum() -> None:
    given = torch.rand(1024, 1024, generator=generator(1))
    drawn = draws.reshape(given, draw_names.SPIKED, generator())
    assert 0.1 < 1 - float(given.sum() / drawn.sum()) < 0.6
    assert draws.reshape(torch.arange(10), draw_names.SPIKED, generator()).tolist() == list(range(10))


def test_other_booleans_are_some_flipped() -> None:
    found = integers.others(torch.ones(64, 64, dtype=torch.bool), generator())
    assert 0.7 < found.double().mean() < 0.8


def test_positions_that_all_differ_still_do() -> None:
    found = integers.others(torch.arange(1024), generator())
    assert found.unique().numel() == 1024 and not torch.equal(found, torch.arange(1024))
    assert found[:64].tolist() == list(range(64))


def test_offsets_in_order_stay_in_order_between_their_ends() -> None:
    given = torch.arange(0, 1024, 16)
    found = integers.others(given, generator())
    assert (found.diff() > 0).all() and not torch.equal(found, given)
    assert (int(found[0]), int(found[-1])) == (0, 1008)


def test_groups_in_order_stay_in_order() -> None:
    given = torch.arange(256) // 16
    found = integers.others(given, generator())
    assert (found.diff() >= 0).all() and not torch.equal(found, given)
    assert (int(found[0]), int(found[-1])) == (0, 15)


@pytest.mark.parametrize(("value", "allowed"), [(1, {0, 1}), (128, set(range(1, 129))), (0, {0})])
def test_what_would_be_one_constant_is_shortened(value: int, allowed: set[int]) -> None:
    found = integers.others(torch.full((1024,), value), generator())
    assert set(found.tolist()) <= allowed and (len(set(found.tolist())) > 1) == (value > 0)


def test_numbers_of_a_class_stay_within_their_range_and_type() -> None:
    given = torch.randint(0, 10, (1024,), generator=generator(1), dtype=torch.int32)
    found = integers.others(given, generator())
    assert found.dtype == torch.int32 and int(found.min()) >= 0 and int(found.max()) <= 9
    assert not torch.equal(found, given)
