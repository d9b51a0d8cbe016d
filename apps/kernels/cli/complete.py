"""JSON in which every key is there at every depth: what was not reached is null, lists are empty.

Scripts can then read `timing.speedup.median` without asking first whether there was a timing.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any

from apps.kernels.plain import Plain, to_plain


def complete(value: Any, kind: type | None = None) -> Plain:
    """Plain data for a dataclass, or for a `kind` of which nothing is known (`value` None)."""
    return _filled(kind or type(value), to_plain(value))


def _filled(kind: Any, data: Plain) -> Plain:
    kind = _without_none(kind)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        known = data if isinstance(data, dict) else {}
        return {
            field.name: _filled(hints[field.name], known.get(field.name, _start(field, data is None)))
            for field in dataclasses.fields(kind)
        }
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return [_filled(arguments[0], item) for item in data or []]
    if typing.get_origin(kind) is dict:
        return {key: _filled(arguments[1], item) for key, item in (data or {}).items()}
    return data


def _start(field: dataclasses.Field[Any], unknown: bool) -> Plain:
    """A field's value where nothing is known: the schema's number stays, everything else is null."""
    return field.default if unknown and field.name == "schema" else None


def _without_none(kind: Any) -> Any:
    """`T` for `T | None`; a union of several types stays as it is."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kinds = [one for one in typing.get_args(kind) if one is not type(None)]
        return kinds[0] if len(kinds) == 1 else kind
    return kind
