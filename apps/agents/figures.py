"""How agents write a figure, in reports, prompts and reasons alike."""

from __future__ import annotations

from apps.kernels.profile.names import unit_for

_BYTES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def figure(value: float, unit: str) -> str:
    """A value with its unit, as people write it: shares in per cent, ratios with their sign, bytes by the thousand."""
    match unit:
        case "share":
            return f"{100 * value:.3g}%"
        case "x" | "ratio":
            return f"{value:.3g}×"
        case "B":
            scale, prefix = next((one for one in _BYTES if abs(value) >= one[0]), (1.0, ""))
            return f"{value / scale:.4g} {prefix}B"
    return f"{value:.4g} {unit_for(value, unit)}".rstrip()
