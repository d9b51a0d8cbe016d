"""Small arrays of numbers as bytes, compared in plain Python (the judge imports no torch)."""

from __future__ import annotations

import math
import struct

FORMATS = {
    "float64": "d",
    "float32": "f",
    "float16": "e",
    "int64": "q",
    "int32": "i",
    "int16": "h",
    "int8": "b",
    "uint8": "B",
}


def read(data: bytes, dtype: str) -> tuple[float, ...]:
    """The numbers in `data`; bfloat16 by way of float32."""
    if dtype == "bfloat16":
        wide = b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2))
        return struct.unpack(f"<{len(data) // 2}f", wide)
    if dtype == "bool":
        return tuple(float(bool(b)) for b in data)
    code = FORMATS[dtype]
    return struct.unpack(f"<{len(data) // struct.calcsize(code)}{code}", data)


def close_enough(one: bytes, other: bytes, dtype: str, tolerance: float = 1e-4) -> bool:
    """Whether two arrays agree within `tolerance` of the second one's largest finite magnitude; integers exactly."""
    first, second = read(one, dtype), read(other, dtype)
    if "float" not in dtype:
        return first == second
    allowed = tolerance * max((abs(v) for v in second if math.isfinite(v)), default=0.0)
    pairs = zip(first, second, strict=True)
    return all(a == b or abs(a - b) <= allowed or (math.isnan(a) and math.isnan(b)) for a, b in pairs)
