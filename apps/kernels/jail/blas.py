"""OpenBLAS, which NumPy brings and torch imports, starts its threads when it is loaded; a zygote must have none to fork.

So it is loaded with one thread, and gets back in each jailed process what it would have had.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

from apps.kernels.jail.mappings import mappings

VARIABLE = "OPENBLAS_NUM_THREADS"
SETTERS = ("openblas_set_num_threads", "openblas_set_num_threads64_", "scipy_openblas_set_num_threads64_")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """What is loaded within starts no threads of OpenBLAS's."""
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        del os.environ[VARIABLE]


def loaded() -> tuple[str, ...]:
    """The OpenBLAS libraries of this process, few or none; /proc must be readable."""
    paths = {one.path for one in mappings("self")}
    return tuple(sorted(path for path in paths if path.startswith("/") and "openblas" in path))


def give_back_threads(libraries: tuple[str, ...]) -> None:
    """Let each of them use every processor again."""
    for path in libraries:
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
            for name in SETTERS:
                with contextlib.suppress(AttributeError):
                    getattr(library, name)(len(os.sched_getaffinity(0)))
