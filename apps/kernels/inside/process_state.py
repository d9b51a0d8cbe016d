"""What a process has set for everything in it: a candidate that changes it changes more than its own kernel.

Asked inside the candidate's process, so it is a tripwire: whoever lies here has still to pass the probes.
"""

from __future__ import annotations

import contextlib

import torch

from apps.kernels.plain import Plain

_default, _precision, _threads = torch.get_default_dtype, torch.get_float32_matmul_precision, torch.get_num_threads
_deterministic = torch.are_deterministic_algorithms_enabled
_full = torch.full
PER_THREAD = 1 << 16  # elements: twice what torch gives one thread, so that each of them has a part
SUBNORMAL = 2.0**-130


def snapshot(*, threads_started: bool = False) -> dict[str, Plain]:
    """Default data type, precision of float32 products, rounding, subnormal numbers, threads.

    With `threads_started`, rounding and subnormal numbers in every thread that torch computes with, not in this one alone.
    """
    found: dict[str, Plain] = {
        "default data type": str(_default()).removeprefix("torch."),
        "threads": _threads(),
        "deterministic algorithms": _deterministic(),
        "rounding": "to nearest" if _rounds_to_nearest(threads_started) else "otherwise",
        "subnormal numbers": "flushed to zero" if _flushes(threads_started) else "kept",
    }
    with contextlib.suppress(RuntimeError):  # torch refuses to say where its old and its new setting were mixed
        found["precision of float32 products"] = _precision()
    for name in ("matmul", "conv"):
        with contextlib.suppress(AttributeError, RuntimeError):
            found[f"precision of float32 {name} (oneDNN)"] = str(getattr(torch.backends.mkldnn, name).fp32_precision)
    return found


def changed(before: dict[str, Plain], after: dict[str, Plain]) -> dict[str, list[Plain]]:
    """What differs: name to value before and after."""
    return {name: [before.get(name), value] for name, value in after.items() if before.get(name) != value}


def _rounds_to_nearest(threads_started: bool) -> bool:
    one, tiny = float.fromhex("0x1p0"), float.fromhex("0x1p-60")
    if one + tiny != one or one - tiny != one:
        return False
    if not threads_started:
        return True
    many = _in_all_threads(1.0)
    return bool((many.add(tiny) == 1.0).all()) and bool((many.sub(tiny) == 1.0).all())


def _flushes(threads_started: bool) -> bool:
    smallest = float.fromhex("0x1p-1022")
    if smallest * 0.5 == 0.0:
        return True
    return threads_started and bool((_in_all_threads(SUBNORMAL).mul(0.5) == 0.0).any())


def _in_all_threads(value: float) -> torch.Tensor:
    """As many elements of this value as give each of torch's threads a part of them."""
    return _full((PER_THREAD * max(1, _threads()),), value)
