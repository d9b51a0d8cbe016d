"""The usual case of a comparison, quickly: everything finite, nothing at a discontinuity, nothing wrong.

Whole-tensor arithmetic in float64 writes and faults several tensors of twice the output's size; here each slab's
temporaries stay in the second-level cache. The rule is `comparer.limits`, the decision the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

CHUNK = 1024  # outputs are judged against the scale of their neighbourhood, this many elements in a row
SLAB = 256 * CHUNK
OWN_ERROR_FACTOR = 8.0  # multiple of torch's own error that is allowed
ULPS = 8.0  # units in the last place, at the neighbourhood's scale
# Of sixteen bits: what is computed in more and rounded once is off by half a unit, and so is torch at its best.
OWN_ERROR_FACTOR_OF_SHORT, ULPS_OF_SHORT = 3.0, 2.0
LONGEST_SUM = 2.0**-14  # that a sum's rounding errors may come to, however long it is; a fifth of what TF32 loses
NEAR = 2.0**-10  # torch's own float32 counts as near float64 up to this error, relative to scale


@dataclass(frozen=True)
class Screened:
    """The error nearest its limit, relative to its neighbourhood's scale, and that limit."""

    error: float
    tolerance: float


def screen(
    exact: torch.Tensor, own: torch.Tensor, got: torch.Tensor, size: int, reduction: int, *, drifts: bool = False
) -> Screened | None:
    """Judge flat tensors of one length, `size` elements a neighbourhood; None where anything is unusual or wrong, which then
    wants a closer look.
    """
    if exact.numel() == 0 or not got.is_contiguous():
        return None
    slab = SLAB // size * size
    slabs = [slice(at, at + slab) for at in range(0, exact.numel(), slab)]
    peaks = [_peaks(exact[slab], own[slab], got[slab], size) for slab in slabs]
    scale, mine, theirs = (torch.cat(parts) for parts in zip(*peaks, strict=True))
    if not all(bool(torch.isfinite(part).all()) for part in (scale, mine, theirs)):
        return None
    scale, allowed = limits(scale, mine, torch.finfo(own.dtype), reduction, drifts=drifts)
    error = theirs / scale
    excess = error - allowed
    worst = int(excess.argmax())
    if float(excess[worst]) > 0 or bool((mine / scale > NEAR).any()):
        return None
    return Screened(float(error[worst]), float(allowed[worst]))


def limits(
    peak: torch.Tensor, own_error: torch.Tensor, kind: torch.finfo, reduction: int, *, drifts: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """For each chunk, from its largest magnitude and torch's own largest error: its scale, and the error allowed.

    Allowed, relative to the scale, is the largest of a multiple of torch's own error and what `least` says.
    """
    scale = torch.maximum(peak, peak.max() * kind.eps).clamp_min(kind.tiny)
    error = own_error / scale
    usual = torch.quantile(error[:: max(1, error.numel() // 100_000)], 0.9)
    return scale, torch.maximum(error, usual).mul(own_factor(kind)).clamp_min(least(kind, reduction, drifts=drifts))


def own_factor(kind: torch.finfo) -> float:
    """The multiple of torch's own error that is allowed."""
    return OWN_ERROR_FACTOR_OF_SHORT if kind.bits == 16 else OWN_ERROR_FACTOR


def least(kind: torch.finfo, terms: int, *, drifts: bool = False) -> float:
    """The error that is allowed whatever torch's own is: a few units in the last place, and what a sum of so many terms errs.

    Rounding errors of a plain running sum of K positive terms are independent of each other and have a standard deviation of
    eps·sqrt(K)/8, so that none of a billion such sums lies beyond eps·sqrt(K). On inputs where terms repeat, or one of them
    outweighs the rest (`drifts`), they are not: the same term is rounded the same way again and again, and what is smaller
    than half a unit of the sum is lost each time. There the bound that always holds is allowed (eps·K/2: Higham, Accuracy
    and Stability of Numerical Algorithms, 4.2). Neither goes beyond 2^-14: one accumulator alone no longer does for more than
    some ten million terms, and a part of them can't be left out.
    """
    sums = terms / 2 if drifts else math.sqrt(terms)
    last_places = ULPS_OF_SHORT if kind.bits == 16 else ULPS
    return max(last_places * float(kind.eps), min(summing(kind) * max(sums, math.sqrt(terms)), LONGEST_SUM))


def summing(kind: torch.finfo) -> float:
    """The epsilon in which terms of a type are added up: torch adds sixteen-bit numbers in float32, and rounds the sum once."""
    return min(float(kind.eps), float(torch.finfo(torch.float32).eps))


def _peaks(exact: torch.Tensor, own: torch.Tensor, got: torch.Tensor, size: int) -> tuple[torch.Tensor, ...]:
    """For each chunk of a slab the largest magnitude, torch's largest error and the candidate's."""
    return tuple(largest(values, size) for values in (exact.abs(), _error(own, exact), _error(got, exact)))


def _error(values: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    wide = values.double()
    return (wide - exact if wide is values else wide.sub_(exact)).abs_()


def largest(values: torch.Tensor, size: int) -> torch.Tensor:
    """The largest of each `size` values in a row, which are not negative; NaN where one is NaN."""
    whole = values.numel() // size * size
    found = values[:whole].view(-1, size).amax(1)
    if whole == values.numel():
        return found
    return torch.cat([found, values[whole:].amax().reshape(1)])
