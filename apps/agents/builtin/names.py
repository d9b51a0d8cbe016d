"""Names that a problem gives its arguments, made safe for the Python and C++ of a candidate."""

from __future__ import annotations

import keyword
import re

_CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const constexpr
const_cast continue decltype default delete do double dynamic_cast else enum explicit export extern false float for
friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected
public register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch
template this thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t
while xor xor_eq std omp main run int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
"""
_PYTHON = "self torch nn ctypes hashlib os pathlib shlex subprocess tempfile load as_expected type"
# Functions and types of `cpp.functions`, and what printers write themselves.
_PIECES = """
Vector vec Element element lanes like splat convert bits Whole mask select both either negated number load load_truth
store store_truth bfloat16 float16 stream streamed counting gather each fold_lanes maximum minimum absolute signed_like
sign_of root cut floor_of ceil_of round_of floor_divide floor_remainder poly poly_from exponential
exponential_less_1 logarithm logarithm_1_plus hyperbolic_tangent error_function logistic round_bfloat16 round_float16
load_backwards load_every_other store_backwards moved_up scan_lanes
sine cosine lesser scaled at_most at_least one NAN INFINITY INT32_MIN INT64_MIN
"""
_RESERVED = frozenset((*_CPP.split(), *_PYTHON.split(), *_PIECES.split(), *keyword.kwlist, *keyword.softkwlist))
# Outputs, scratch, kept rows, loop variables, vector types, what the candidate's module defines.
_OURS = re.compile(r"(out|part|kept|operand)\d*|[ltu]|[FDIJ]\d+|LIB|RUN\d*|SOURCE|FLAGS|V")


def safe_name(name: str) -> str:
    """The name itself where nothing else in a candidate may be called so, else with `_in` behind it."""
    return f"{name}_in" if name in _RESERVED or _OURS.fullmatch(name) else name
