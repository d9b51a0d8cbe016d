"""Loads in C++: of one element, or of a vector of them that lie side by side, backwards, every other one, or anywhere.

Where guards may not hold, a vector that lies wholly within them is loaded as any other; only one across an edge is put
together element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from apps.agents.builtin.cpp.scalar_text import MEMORY, TYPES, literal
from apps.agents.builtin.form import Guard, Load, zero
from apps.agents.builtin.index import Axis

if TYPE_CHECKING:
    from apps.agents.builtin.cpp.expressions import Expressions
    from apps.agents.builtin.cpp.scope import Scope

_SMALL_FLOATS = ("bfloat16", "float16")


def loaded(expressions: Expressions, load: Load, scope: Scope, lanes: int) -> str:
    """The text of a load; `lanes` is 1 where it does not vary along the vector axis."""
    if load.buffer.dtype in _SMALL_FLOATS:
        expressions.need(load.buffer.dtype)
    if lanes == 1 or scope.vector is None:
        return _guarded(load, _element(load, scope.index(load.offset)), scope, _nothing(load))
    along = scope.vector[0]
    together = _together(expressions, load, scope, lanes, along)
    if together is None:
        return _apart(expressions, load, scope, lanes, along)
    if not load.guards:
        return together
    within = _whole_vector_within(load.guards, scope, lanes, along)
    if within is None or load.dtype == "bool":
        return _apart(expressions, load, scope, lanes, along)
    return f"({within} ? {together} : {_apart(expressions, load, scope, lanes, along)})"


def _element(load: Load, where: str) -> str:
    name = load.buffer.name
    if load.buffer.dtype == "bool":
        return f"({name}[{where}] != 0)"
    if load.buffer.dtype in _SMALL_FLOATS:
        return f"load<float>({name if where == '0' else f'{name} + {where}'})"
    text = f"{name}[{where}]"
    return text if MEMORY[load.buffer.dtype] == TYPES[load.dtype] else f"static_cast<{TYPES[load.dtype]}>({text})"


def _together(expressions: Expressions, load: Load, scope: Scope, lanes: int, along: Axis) -> str | None:
    """As one or two loads of whole vectors, where the elements' distance allows it."""
    step = load.offset.coefficient(along)
    where = scope.index(load.offset)
    at = load.buffer.name if where == "0" else f"{load.buffer.name} + {where}"
    if step == 1 and load.buffer.dtype == "bool":
        expressions.need("load_truth")
        return f"load_truth<{lanes}>({at})"
    vector = expressions.vector_type(load.dtype, lanes)
    if step == 1:
        expressions.need("load")
        return f"load<{vector}>({at})"
    if load.buffer.dtype == "bool" or step not in (-1, 2):
        return None
    expressions.need("load_apart")
    return f"{'load_backwards' if step == -1 else 'load_every_other'}<{vector}>({at})"


def _apart(expressions: Expressions, load: Load, scope: Scope, lanes: int, along: Axis) -> str:
    """Element by element."""
    expressions.need("gather")
    dtype = "int32" if load.dtype == "bool" else load.dtype
    element = _element(load, scope.index(load.offset, "l", along))
    if load.dtype == "bool":
        element = f"int32_t({element})"
    nothing = "0" if load.dtype == "bool" else _nothing(load)
    element = _guarded(load, element, scope, nothing, "l", along)
    text = f"gather<{expressions.vector_type(dtype, lanes)}>([&](int64_t l) {{ return {element}; }})"
    return f"({text} != 0)" if load.dtype == "bool" else text


def _nothing(load: Load) -> str:
    return literal(zero(load.dtype) if load.fill is None else load.fill, load.dtype)


def _guarded(load: Load, text: str, scope: Scope, nothing: str, plus: str = "", along: Axis | None = None) -> str:
    if not load.guards:
        return text
    tests = [test for guard in load.guards for test in _tests(guard, scope.index(guard.index, plus, along))]
    return f"({' && '.join(tests)} ? {text} : {TYPES[load.dtype]}({nothing}))"


def _tests(guard: Guard, first: str, last: str | None = None) -> list[str]:
    low, high = guard.index.range()
    return [f"{first} >= 0"] * (low < 0) + [f"{last or first} < {guard.extent}"] * (high >= guard.extent)


def _whole_vector_within(guards: Sequence[Guard], scope: Scope, lanes: int, along: Axis) -> str | None:
    """A test for all lanes at once, by the first and the last of them; None where these do not decide."""
    tests: list[str] = []
    for guard in guards:
        step = guard.index.coefficient(along)
        if step is None:
            return None
        ends = [scope.index(guard.index), scope.index(guard.index + step * (lanes - 1))]
        tests += _tests(guard, *(ends if step >= 0 else ends[::-1]))
    return " && ".join(tests)
