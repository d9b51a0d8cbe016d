"""Frozen dataclasses to plain JSON data and back: the one codec of everything that crosses a process or a JSON column.

A dataclass becomes a dict of its fields, an enum its value, a tuple a list. Reading is strict: an unknown key, a missing
field without default or a value of another type raises `BadPlain` naming the path, so that a broken message is refused
where it enters. Not-a-number and infinities travel as the strings "nan", "inf" and "-inf": JSON has no such numbers.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")

# What JSON can carry. Recursive aliases are written loosely: mypy follows them, people need not.
Plain = Any

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class BadPlain(ValueError):
    """Plain data that does not have the shape its reader promised; the message names the path and what was expected."""


def to_plain(value: Any) -> Plain:
    """JSON-ready data for a dataclass, enum, tuple, mapping or scalar."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], data: Plain, path: str = "$") -> T:
    """The value of type `kind` that `data` describes; raises `BadPlain` where it describes none."""
    return typing.cast("T", _read(kind, data, path))


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, data: Plain, path: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return data
    if origin in (typing.Union, types.UnionType):
        return _read_union(arguments, data, path)
    if origin is tuple:
        return _read_tuple(arguments, data, path)
    if origin is dict or origin is Mapping:
        if not isinstance(data, dict):
            raise BadPlain(f"{path}: expected an object, got {type(data).__name__}")
        return {str(key): _read(arguments[1], item, f"{path}.{key}") for key, item in data.items()}
    if dataclasses.is_dataclass(kind):
        return _read_dataclass(typing.cast("type", kind), data, path)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(data)
        except ValueError:
            raise BadPlain(f"{path}: {data!r} is none of {', '.join(str(m.value) for m in kind)}") from None
    return _read_scalar(kind, data, path)


def _read_union(arguments: tuple[Any, ...], data: Plain, path: str) -> Any:
    if data is None and type(None) in arguments:
        return None
    problems = []
    for kind in arguments:
        if kind is type(None):
            continue
        try:
            return _read(kind, data, path)
        except BadPlain as problem:
            problems.append(str(problem))
    raise BadPlain(problems[0] if problems else f"{path}: expected null")


def _read_tuple(arguments: tuple[Any, ...], data: Plain, path: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise BadPlain(f"{path}: expected a list, got {type(data).__name__}")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_read(arguments[0], item, f"{path}[{i}]") for i, item in enumerate(data))
    if len(data) != len(arguments):
        raise BadPlain(f"{path}: expected {len(arguments)} items, got {len(data)}")
    return tuple(_read(kind, item, f"{path}[{i}]") for i, (kind, item) in enumerate(zip(arguments, data, strict=True)))


def _read_dataclass(kind: type, data: Plain, path: str) -> Any:
    if not isinstance(data, dict):
        raise BadPlain(f"{path}: expected an object for {kind.__name__}, got {type(data).__name__}")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    unknown = sorted(set(data) - set(fields))
    if unknown:
        raise BadPlain(f"{path}: {kind.__name__} has no field {unknown[0]!r}")
    hints = _hints(kind)
    values = {name: _read(hints[name], item, f"{path}.{name}") for name, item in data.items()}
    for name, field in fields.items():
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if name not in values and required:
            raise BadPlain(f"{path}: {kind.__name__} wants {name!r}")
    return kind(**values)


def _read_scalar(kind: Any, data: Plain, path: str) -> Any:
    if kind is float and isinstance(data, str) and data in _SPECIAL:
        return _SPECIAL[data]
    if kind is float and isinstance(data, int | float) and not isinstance(data, bool):
        return float(data)
    if kind is int and isinstance(data, int) and not isinstance(data, bool):
        return data
    if kind in (str, bool) and isinstance(data, kind):
        return data
    raise BadPlain(f"{path}: expected {getattr(kind, '__name__', kind)}, got {type(data).__name__}")
