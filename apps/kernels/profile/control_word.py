"""How a process's first thread rounds and whether it flushes subnormal numbers, read from outside by ptrace.

What a process says of itself can be patched; the register can't. Bits of MXCSR as in the Intel SDM, volume 1, 10.2.3.
"""

from __future__ import annotations

import ctypes
import platform

from apps.kernels.profile.tracing import GET_FLOATING_POINT, NoTracing, interrupted, ptrace

AREA, OFFSET = 512, 24  # of user_fpregs_struct (x86-64), and of MXCSR in it
ROUNDING, FLUSH, ZEROS = 3 << 13, 1 << 15, 1 << 6  # RC; FTZ: results; DAZ: operands


def control_word(pid: int) -> dict[str, str] | None:
    """Its rounding and what becomes of subnormal numbers; None where it can't be read here. It may stand still or run."""
    if platform.machine() != "x86_64":
        return None
    area = (ctypes.c_ubyte * AREA)()
    try:
        with interrupted(pid):
            if ptrace(GET_FLOATING_POINT, pid, ctypes.addressof(area)) < 0:
                return None
    except NoTracing:
        return None
    return in_words(int.from_bytes(bytes(area[OFFSET : OFFSET + 4]), "little"))


def in_words(word: int) -> dict[str, str]:
    """MXCSR, as `inside.process_state` names it."""
    return {
        "rounding": "otherwise" if word & ROUNDING else "to nearest",
        "subnormal numbers": "flushed to zero" if word & (FLUSH | ZEROS) else "kept",
    }
