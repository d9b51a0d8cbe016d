"""Which bandwidth stands over a kernel, and which one is safe for a floor under possible times."""

from __future__ import annotations

import pytest

from apps.kernels.host.roofs import bandwidth_roof, largest_bandwidth
from apps.kernels.machine import Bandwidth, Ceilings

MB = 1 << 20
MEASURED = {
    ("read", 1): 400.0, ("copy", 1): 300.0, ("write", 1): 200.0, ("triad", 1): 350.0, ("copy_nt", 1): 50.0,
    ("read", 256): 60.0, ("copy", 256): 45.0, ("write", 256): 25.0, ("triad", 256): 48.0, ("copy_nt", 256): 66.0,
    ("write_nt", 256): 40.0,
}  # fmt: skip


@pytest.fixture
def ceilings() -> Ceilings:
    rows = [Bandwidth(mix, size * MB, 2, value) for (mix, size), value in MEASURED.items()]
    return Ceilings(bandwidth=(*rows, Bandwidth("read", 256 * MB, 1, 30.0)))


def test_a_copy_beyond_the_caches_has_the_streaming_copy_over_it(ceilings: Ceilings) -> None:
    roof = bandwidth_roof(ceilings, 128 * MB, 128 * MB, 2)
    assert roof is not None
    assert (roof.mix, roof.gbytes_per_s) == ("copy_nt", pytest.approx(66.0))
    plain = bandwidth_roof(ceilings, 128 * MB, 128 * MB, 2, streaming=False)
    # plain stores: reading first and writing afterwards costs 1/60 and 1/25 a byte, a copy 1/45
    assert plain is not None
    assert (plain.mix, plain.gbytes_per_s) == ("copy", pytest.approx(45.0))


def test_in_cache_the_same_copy_is_best_with_plain_stores(ceilings: Ceilings) -> None:
    roof = bandwidth_roof(ceilings, MB // 2, MB // 2, 2)
    assert roof is not None
    assert (roof.mix, roof.gbytes_per_s, roof.working_set_bytes) == ("copy", pytest.approx(300.0), MB)


def test_a_mix_between_measured_ones_is_interpolated_in_time(ceilings: Ceilings) -> None:
    roof = bandwidth_roof(ceilings, 3 * 64 * MB, 64 * MB, 2)  # three quarters read
    assert roof is not None
    assert roof.mix == "copy_nt+read"
    assert roof.gbytes_per_s == pytest.approx(1 / (0.5 / 66 + 0.5 / 60))


def test_a_reduction_is_under_the_read_roof_and_threads_matter(ceilings: Ceilings) -> None:
    both = bandwidth_roof(ceilings, 256 * MB, 4, 2)
    one = bandwidth_roof(ceilings, 256 * MB, 4, 1)
    assert both is not None
    assert one is not None
    assert (both.mix, both.gbytes_per_s) == ("read", pytest.approx(60.0))
    assert one.gbytes_per_s == pytest.approx(30.0)


def test_a_figure_from_a_busy_moment_does_not_lower_the_roof(ceilings: Ceilings) -> None:
    spoiled = Ceilings(bandwidth=(*ceilings.bandwidth, Bandwidth("read", 64 * MB, 2, 20.0)))
    roof = bandwidth_roof(spoiled, 64 * MB, 4, 2)
    assert roof is not None
    assert (roof.gbytes_per_s, roof.working_set_bytes) == (pytest.approx(60.0), 64 * MB)


def test_nothing_measured_gives_no_roof() -> None:
    assert bandwidth_roof(Ceilings(), MB, MB, 2) is None
    assert largest_bandwidth(Ceilings(), MB) is None


def test_a_floor_takes_the_faster_smaller_set_for_a_size_between(ceilings: Ceilings) -> None:
    """A set of 30 MB may live in a cache that the measured 256 MB does not: only the faster figure can't wrong anyone."""
    assert largest_bandwidth(ceilings, 30 * MB) == 400.0
    assert largest_bandwidth(ceilings, 300 * MB) == 66.0
    assert largest_bandwidth(ceilings, 1000) == 400.0
