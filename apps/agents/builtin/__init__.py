"""The built-in coder and conductor: kernels from a problem's meaning, a schedule, and moves that measurements choose."""

from apps.agents.builtin.coder import BuiltinCoder
from apps.agents.builtin.conductor import BuiltinConductor

__all__ = ["BuiltinCoder", "BuiltinConductor"]
