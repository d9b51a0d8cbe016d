"""Is one output right? Numbers against the float64 answer, integers exactly, indices by what they select."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from apps.kernels.inside import screening
from apps.kernels.inside.screening import CHUNK, NEAR
from apps.kernels.plain import Plain

FEW, LEAST = (
    16,
    32,
)  # places along an axis, each of which may hold a quantity of its own; elements that make one's scale
FILL_PEAK = 1000.0  # a value that stands for nothing (what a mask leaves) is at least so large
FILLED = 16  # and there as often in a neighbourhood
JUMPS_ALLOWED = 0.02  # share of elements at a discontinuity that may be left out
NEAR_REDUCED = 2.0**-6  # where the reference itself computes products in fewer bits
ROUGH = 2.5  # times the errors of sixteen bits, taken together, that rounding once gives, or torch's own
NEAR_ULPS = 8  # and in the shorter types, whose own rounding is larger than NEAR


@dataclass(frozen=True)
class Scores:
    """What an output of indices selects from: one row for each index, or for each `k` of them along `dim`.

    `limit` is how much smaller, relative to a row's largest magnitude, what is selected may be than what should be.
    `ordered` says whether the k of a row come in order.
    """

    values: torch.Tensor  # rows, n
    dim: int | None
    limit: float
    ordered: bool = True


def judge(
    exact: torch.Tensor,
    own: torch.Tensor,
    got: torch.Tensor,
    reduction: int,
    *,
    near: float = NEAR,
    drifts: bool = False,
    jumps: torch.Tensor | None = None,
    scores: Scores | None = None,
    overlaid: bool = False,
) -> Plain:
    """Hold an output against the exact answer and torch's own.

    `jumps` marks elements so near a discontinuity that rounding decides: they are left out and counted. `drifts` says that
    the inputs make a running sum's errors add up, `overlaid` that a part of `got` is torch's own. Gives passed, near
    (whether torch's own answer is near enough to the exact one to judge by), error, tolerance, left_out, wrong, detail.
    """
    if own.is_floating_point():
        found = _floats(exact, own, got, reduction, near, drifts, jumps)
        if found["passed"] and (words := _too_rough(exact, own, got, jumps)):
            return {**found, "passed": False, "wrong": got.numel(), "detail": words}
        fill = _fill(exact) if found["passed"] else None
        if fill is None:
            return found
        rest = [tensor.masked_fill(fill, 0.0) for tensor in (exact, own, got)]
        among = _floats(rest[0], rest[1], rest[2], reduction, near, drifts, jumps)
        return among if among["near"] and not among["passed"] else found
    if scores is not None:
        return _indices(exact, got, scores, whole=not overlaid)
    return _integers(exact, own, got, jumps)


def _of_few_places(shape: torch.Size) -> list[int]:
    """Axes along which there may lie a mean, a sum of squares and a maximum side by side: those of few places that come last,
    where LEAST elements and more lie at each. Each place is then judged against its own kind.
    """
    found: list[int] = []
    inner, left = 1, math.prod(shape)
    for axis in reversed(range(len(shape))):
        if inner < CHUNK and 1 < shape[axis] <= FEW and left >= LEAST * shape[axis]:
            found.insert(0, axis)
            left //= shape[axis]
        inner *= shape[axis]
    return found


def order_of(shape: torch.Size) -> list[int]:
    """The axes in the order in which an output is divided into neighbourhoods."""
    first = _of_few_places(shape)
    return [*first, *(axis for axis in range(len(shape)) if axis not in first)]


def chunk_of(shape: torch.Size) -> int:
    """How many elements in that order make a neighbourhood."""
    count = math.prod(shape) // math.prod(shape[axis] for axis in _of_few_places(shape))
    return min(CHUNK, max(1, int(count)))


def in_order(tensor: torch.Tensor) -> torch.Tensor:
    """An output flat, in the order in which it is divided into neighbourhoods."""
    return tensor.permute(order_of(tensor.shape)).reshape(-1)


def _fill(exact: torch.Tensor) -> torch.Tensor | None:
    """Which elements hold a large value that their neighbourhood has many times, as masks leave it: beside it all others
    would count as nothing. None where there are none.
    """
    sizes = exact.abs()
    if exact.numel() == 0 or not float(sizes.nan_to_num(posinf=0.0).max()) >= FILL_PEAK:
        return None
    flat = torch.where(torch.isfinite(sizes), sizes, 0.0)
    peak = flat.max()
    fill = flat == peak
    count = int(fill.sum())
    return fill if FILLED <= count < exact.numel() else None


def _floats(
    exact: torch.Tensor,
    own: torch.Tensor,
    got: torch.Tensor,
    reduction: int,
    near: float,
    drifts: bool,
    jumps: torch.Tensor | None,
) -> Plain:
    shaped, size = got, chunk_of(got.shape)
    exact, own, got = in_order(exact), in_order(own), in_order(got)
    near = max(near, NEAR_ULPS * torch.finfo(own.dtype).eps)
    if jumps is None:
        usual = screening.screen(exact, own, got, size, reduction, drifts=drifts) or _screen_finite(
            exact, own, got, size, reduction, drifts
        )
        if usual is not None:
            return {"passed": True, "error": usual.error, "tolerance": usual.tolerance, "near": True}
    if exact.numel() == 0:
        return {"passed": True, "error": 0.0, "tolerance": 0.0, "near": True}
    odd = ~torch.isfinite(own)
    # where the result itself is too large for float32, or is none, torch's own answer is what is meant; where torch only
    # passes through numbers that are too large, its answer is far from the exact one, like any other that is
    lost = odd & (exact.abs() <= torch.finfo(own.dtype).max)
    kinds = _kind(exact.to(own.dtype))  # torch's own of an infinite number is now and then none, by processor
    exact = torch.where(odd, own.double(), exact)
    clean, mine = exact.masked_fill(odd, 0.0), own.masked_fill(odd, 0.0)
    scale, _ = limits(clean, mine, size, reduction, drifts)
    out = (_relative(mine, clean, scale, size) > near) | lost
    if jumps is not None:
        out |= in_order(jumps)
    share = float(out.double().mean())
    wrong_kind = (_kind(got) != _kind(own)) & (_kind(got) != kinds) & ~out
    if bool(wrong_kind.any()):
        at = int(wrong_kind.nonzero()[0])
        words = f"{int(wrong_kind.sum())} elements are NaN or infinite where they should not be, or the reverse"
        return _failure(shaped, got, own, at, words)
    theirs = got.masked_fill(odd, 0.0)
    if share <= JUMPS_ALLOWED and share:
        # left out: neither an error of theirs nor one of torch's own, which would widen the limit of their neighbours
        mine, theirs = torch.where(out, clean.to(own.dtype), mine), torch.where(out, clean.to(own.dtype), theirs)
    scale, allowed = limits(clean, mine, size, reduction, drifts)
    error = _relative(theirs, clean, scale, size)
    excess = error - allowed.repeat_interleave(size)[: clean.numel()]
    if share <= JUMPS_ALLOWED:
        excess = excess.masked_fill(out, -1.0)
    worst = int(excess.nan_to_num(nan=torch.inf).argmax())
    answer: dict[str, Any] = {
        "passed": float(excess[worst]) <= 0,
        "error": float(error[worst]),
        "tolerance": float(allowed[worst // size]),
        "near": share <= JUMPS_ALLOWED,
        "left_out": int(out.sum()) if share <= JUMPS_ALLOWED else 0,
        "share": share,
        "wrong": int((excess > 0).sum()),
    }
    if not answer["passed"]:
        answer["detail"] = f"{answer['wrong']} of {clean.numel()} elements are off; {_place(shaped, got, exact, worst)}"
    return answer


def _too_rough(exact: torch.Tensor, own: torch.Tensor, got: torch.Tensor, jumps: torch.Tensor | None) -> str | None:
    """Whether sixteen bits are off by more than one rounding would have them, taken all together; in words.

    What is computed in more bits and rounded once has errors as large as torch's at its best, evenly spread over half a unit:
    eps/sqrt(12) of each value at most, and half of its square on the average between two powers of two. Weights kept in eight
    bits a row err by several times that, and hardly more anywhere than two units of their neighbourhood's largest value.
    """
    kind = torch.finfo(own.dtype)
    if kind.bits != 16 or exact.numel() < LEAST:
        return None
    exact, own, got = in_order(exact), in_order(own), in_order(got)
    left = torch.ones(exact.numel(), dtype=torch.bool) if jumps is None else ~in_order(jumps)
    size = chunk_of(exact.shape)
    step = max(1, screening.SLAB // size) * size
    theirs = mine = rounding = 0.0
    for at in range(0, exact.numel(), step):
        true, ours, given = exact[at : at + step], own[at : at + step].double(), got[at : at + step].double()
        scale = screening.largest(true.abs().nan_to_num(posinf=0.0), size).clamp_min(kind.tiny)
        scale = scale.repeat_interleave(size)[: true.numel()]
        counts = left[at : at + step] & torch.isfinite(ours) & torch.isfinite(given)
        true, ours, given = (torch.where(counts, one, 0.0) / scale for one in (true, ours, given))
        theirs += float((given - true).square().sum())
        mine += float((ours - true).square().sum())
        rounding += float(true.square().sum()) * float(kind.eps) ** 2 / 24
    allowed = ROUGH * math.sqrt(max(mine, rounding))
    if math.sqrt(theirs) <= allowed:
        return None
    times = math.sqrt(theirs / max(mine, rounding, kind.tiny))
    return (
        f"its errors, taken together, are {times:.3g} times what rounding the answer once to {kind.bits} bits gives "
        f"(or torch's, where those are larger); {ROUGH:g} times is allowed"
    )


def _screen_finite(
    exact: torch.Tensor, own: torch.Tensor, got: torch.Tensor, size: int, reduction: int, drifts: bool
) -> screening.Screened | None:
    """The usual case where torch's answer is NaN or infinite in places, and the candidate's is so in the same ones."""
    odd = (~torch.isfinite(own)).nonzero().squeeze(1)
    if not odd.numel() or not torch.equal(_kind(own[odd]), _kind(got[odd])):
        return None
    clean, mine, theirs = (tensor.index_fill(0, odd, 0.0) for tensor in (exact, own, got))
    return screening.screen(clean, mine, theirs, size, reduction, drifts=drifts)


def _integers(exact: torch.Tensor, own: torch.Tensor, got: torch.Tensor, jumps: torch.Tensor | None) -> Plain:
    """Integers and booleans must equal torch's answer or the exact one; where the two differ, rounding decides."""
    wide, mine = got.long(), own.long()
    out = mine != exact
    if jumps is not None:
        out = out | jumps
    share = float(out.double().mean()) if out.numel() else 0.0
    wrong = ((wide != mine) & (wide != exact)).reshape(-1)
    if jumps is not None:
        wrong &= ~jumps.reshape(-1)
    return _counted(wrong, got, exact, share, int(out.sum()))


def _indices(exact: torch.Tensor, got: torch.Tensor, scores: Scores, *, whole: bool) -> Plain:
    """Right is what selects a value as good as the right one, within rounding of the values it selects from.

    None may be taken twice in a row, which can be told where rows are `whole`: ties may come in another order than torch's.
    """
    rows, n = scores.values.shape
    theirs, right = (_by_row(t.long(), rows, scores.dim) for t in (got, exact))
    outside = (theirs < 0) | (theirs >= n)
    values = scores.values.double()
    taken = values.gather(1, theirs.clamp(0, max(0, n - 1)))
    wanted = values.gather(1, right.clamp(0, max(0, n - 1)))
    if not scores.ordered:
        taken, wanted = taken.sort(1).values, wanted.sort(1).values
    finite = torch.where(torch.isfinite(values), values.abs(), 0.0)
    allowed = scores.limit * finite.amax(1, keepdim=True)
    same = (taken == wanted) | (taken.isnan() & wanted.isnan())
    wrong = outside | ~(same | ((taken - wanted).abs() <= allowed))
    if theirs.shape[1] > 1 and whole:
        ordered, places = theirs.sort(1)
        twice = torch.zeros_like(wrong)
        twice.scatter_(1, places[:, 1:], ordered[:, 1:] == ordered[:, :-1])
        wrong |= twice
    flat = _as_output(wrong, got, scores.dim)
    return _counted(flat, got, exact, 0.0, 0)


def _by_row(indices: torch.Tensor, rows: int, dim: int | None) -> torch.Tensor:
    """Indices as one row for each row of scores."""
    if dim is None:
        return indices.reshape(rows, -1)
    return indices.movedim(dim, -1).reshape(rows, -1)


def _as_output(flags: torch.Tensor, like: torch.Tensor, dim: int | None) -> torch.Tensor:
    """Flags by row, flat in the order of the output's elements."""
    if dim is None:
        return flags.reshape(-1)
    moved = like.movedim(dim, -1).shape
    return flags.reshape(moved).movedim(-1, dim).reshape(-1)


def _counted(wrong: torch.Tensor, got: torch.Tensor, exact: torch.Tensor, share: float, left_out: int) -> Plain:
    count = int(wrong.sum())
    near = share <= JUMPS_ALLOWED
    answer: dict[str, Any] = {
        "passed": count == 0,
        "error": float(count > 0),
        "tolerance": 0.0,
        "near": near,
        "wrong": count,
        "share": share,
        "left_out": left_out if near else 0,
    }
    if count:
        at = int(wrong.nonzero()[0])
        place = _place(got, got.reshape(-1), exact.reshape(-1), at, as_it_lies=True)
        answer["detail"] = f"{count} of {wrong.numel()} elements differ; {place}"
    return answer


def limits(
    exact: torch.Tensor, own: torch.Tensor, size: int, reduction: int, drifts: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """For each chunk its scale, and the largest error allowed relative to that scale (see `screening.limits`)."""
    error = (own.double() - exact).abs()
    peak, own_error = screening.largest(exact.abs(), size), screening.largest(error, size)
    return screening.limits(peak, own_error, torch.finfo(own.dtype), reduction, drifts=drifts)


def _kind(tensor: torch.Tensor) -> torch.Tensor:
    """0 for finite, 1 for NaN, 2 and 3 for the infinities."""
    kind = torch.isnan(tensor).to(torch.int8)
    return kind + 2 * torch.isposinf(tensor).to(torch.int8) + 3 * torch.isneginf(tensor).to(torch.int8)


def _relative(value: torch.Tensor, exact: torch.Tensor, scale: torch.Tensor, size: int) -> torch.Tensor:
    return (value.double() - exact).abs() / scale.repeat_interleave(size)[: exact.numel()]


def _place(shaped: torch.Tensor, got: torch.Tensor, exact: torch.Tensor, at: int, *, as_it_lies: bool = False) -> str:
    """Where the element `at` of flat tensors lies in the output, and both values."""
    order = list(range(shaped.ndim)) if as_it_lies else order_of(shaped.shape)
    index, rest = dict.fromkeys(order, 0), at
    for axis in reversed(order):
        index[axis], rest = rest % shaped.shape[axis], rest // shaped.shape[axis]
    place = [index[axis] for axis in range(shaped.ndim)] or [0]
    return f"at {place} it is {got[at].item():.7g}, the answer is {exact[at].item():.7g}"


def _failure(shaped: torch.Tensor, got: torch.Tensor, own: torch.Tensor, at: int, words: str) -> Plain:
    return {
        "passed": False,
        "error": None,
        "tolerance": None,
        "near": True,
        "detail": f"{words}; {_place(shaped, got, own, at)}",
    }


def jumped(before: torch.Tensor, after: torch.Tensor, near: float) -> torch.Tensor:
    """Which elements of an output changed by more than `near` of their neighbourhood's scale, or at all if integers."""
    if not before.is_floating_point():
        return before != after
    flat, size = before.reshape(-1), min(CHUNK, max(1, before.numel()))
    if flat.numel() == 0:
        return torch.zeros(before.shape, dtype=torch.bool)
    flat, other = flat.double(), after.reshape(-1).double()
    scale = screening.largest(torch.where(torch.isfinite(flat), flat.abs(), 0.0), size)
    scale = torch.maximum(scale, scale.max() * torch.finfo(torch.float32).eps).clamp_min(
        torch.finfo(torch.float32).tiny
    )
    apart = (other - flat).abs().nan_to_num(nan=0.0, posinf=torch.inf)
    moved = apart > near * scale.repeat_interleave(size)[: flat.numel()]
    return (moved | (_kind(flat) != _kind(other))).view(before.shape)
