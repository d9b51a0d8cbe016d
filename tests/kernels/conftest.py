"""A zygote for all tests of this room: importing torch takes a second, and once is enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apps.kernels.jail import Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    with Zygote() as zygote:
        yield zygote
