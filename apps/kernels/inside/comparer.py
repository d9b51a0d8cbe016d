"""The comparer: the judge's array work, in a jailed process that runs nothing of the problem's or the candidate's.

It sees raw bytes: the exact answer, torch's own answer, and what a candidate left in its memory.
"""

from __future__ import annotations

import mmap
from typing import Any

import torch

from apps.kernels.inside import screening, values
from apps.kernels.inside.mapped import Mapped
from apps.kernels.inside.screening import CHUNK, NEAR
from apps.kernels.jail.channel import Channel, ChannelBroken
from apps.kernels.plain import Plain

EXPECT, RAW, BANK = 0, 1, 2
PATTERN = (1 << 16) - 15  # a prime, so that rows of any usual length meet the pattern in different places
ALIKE = 16  # of a set that looks like another, one element in so many is changed
EDGE = 64  # and none of the first and last ones
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
JUMPS_ALLOWED = 0.02  # share of elements at a discontinuity that may be left out


def main(channel: Channel, payload: Plain) -> None:
    """Answer one comparison after the other until the judge goes."""
    torch.set_num_threads(int(payload["threads"]))
    memory = Mapped(channel.files)
    while True:
        try:
            message = channel.receive()
        except ChannelBroken:
            return
        if "mix" in message:
            torch.set_num_threads(1)  # threads that go on spinning would disturb the window that follows
            channel.send(mix(memory[BANK], message))
            continue
        torch.set_num_threads(int(payload["threads"]))
        channel.send(compare(memory[EXPECT], memory[RAW], message))


def mix(bank: mmap.mmap, message: Plain) -> Plain:
    """Element by element from one of two sets of inputs, by a secret pattern that repeats after PATTERN elements."""
    for base, donor, into, seed, alike in message["mix"]:
        generator = torch.Generator().manual_seed(seed)
        pattern = torch.randint(0, ALIKE if alike else 2, (PATTERN,), generator=generator, dtype=torch.uint8) != 0
        for (size, item), one, two, out in zip(message["specs"], base, donor, into, strict=True):
            _mix_tensor(bank, pattern, size // item, WORDS[item], one, two, out)
            if alike:
                _keep_edges(bank, size // item, item, one, out)
    return {"mixed": len(message["mix"])}


def _mix_tensor(
    bank: mmap.mmap, pattern: torch.Tensor, count: int, dtype: torch.dtype, one: int, two: int, out: int
) -> None:
    if count == 0:
        return
    first, second, result = (torch.frombuffer(bank, dtype=dtype, count=count, offset=at) for at in (one, two, out))
    keep = torch.where(pattern, torch.tensor(-1).to(dtype), torch.tensor(0, dtype=dtype))  # all bits, or none
    for start in range(0, count, PATTERN):  # a row fits the second-level cache; bit by bit is faster than choosing
        left, right, into = (tensor[start : start + PATTERN] for tensor in (first, second, result))
        torch.bitwise_xor(left, right, out=into)
        into.bitwise_and_(keep[: into.numel()]).bitwise_xor_(right)


def _keep_edges(bank: mmap.mmap, count: int, item: int, one: int, out: int) -> None:
    """The first and the last elements as they were: where somebody who looks at a few would look."""
    edge = min(EDGE, count // 8) * item
    end = count * item
    bank[out : out + edge] = bank[one : one + edge]
    bank[out + end - edge : out + end] = bank[one + end - edge : one + end]


def compare(expect: mmap.mmap, raw: mmap.mmap, message: Plain) -> Plain:
    """Hold each output against its answer; the first that fails names the place."""
    results = []
    for item in message["outputs"]:
        wide = "int64" if item["dtype"] not in FLOATS else "float64"
        exact = values.over(expect, item["exact"], values.contiguous_spec(wide, item["shape"]))
        own = values.over(expect, item["own"], values.contiguous_spec(item["dtype"], item["shape"]))
        got = values.over(raw, item["got"], {"dtype": item["dtype"], "shape": item["shape"], "stride": item["stride"]})
        if item["dtype"] in FLOATS:
            results.append(_floats(exact, own, got, int(message["reduction"])))
        else:
            results.append(_integers(exact, own, got))
    return {"outputs": results}


FLOATS = ("float16", "bfloat16", "float32", "float64")


def limits(exact: torch.Tensor, own: torch.Tensor, reduction: int) -> tuple[torch.Tensor, torch.Tensor]:
    """For each chunk its scale, and the largest error allowed relative to that scale (see `screening.limits`)."""
    size = _chunk_size(exact.numel())
    error = (own.double() - exact).abs()
    peak, own_error = screening.largest(exact.abs(), size), screening.largest(error, size)
    return screening.limits(peak, own_error, torch.finfo(own.dtype), reduction)


def _floats(exact: torch.Tensor, own: torch.Tensor, got: torch.Tensor, reduction: int) -> Plain:
    exact, own, got = exact.reshape(-1), own.reshape(-1), got.reshape(-1)
    usual = screening.screen(exact, own, got, reduction)
    if usual is not None:
        return {"passed": True, "error": usual.error, "tolerance": usual.tolerance, "near": True}
    odd = ~torch.isfinite(own)
    # where float32 itself overflows, float64 doesn't: there torch's own answer is what is meant
    exact = torch.where(odd, own.double(), exact)
    wrong_kind = _kind(got) != _kind(own)
    if bool(wrong_kind.any()):
        at = int(wrong_kind.nonzero()[0])
        return _failure(
            got,
            own,
            at,
            f"{int(wrong_kind.sum())} elements are NaN or infinite where they should not be, or the reverse",
        )
    clean = exact.masked_fill(odd, 0.0)
    if clean.numel() == 0:
        return {"passed": True, "error": 0.0, "tolerance": 0.0, "near": True}
    mine, theirs = own.masked_fill(odd, 0.0), got.masked_fill(odd, 0.0)
    scale, allowed = limits(clean, mine, reduction)
    own_error = _relative(mine, clean, scale)
    jumps = own_error > NEAR
    share = float(jumps.double().mean())
    near = share <= JUMPS_ALLOWED
    if near and share:
        clean = torch.where(jumps, theirs.double(), clean)
        mine = torch.where(jumps, theirs, mine)
        scale, allowed = limits(clean, mine, reduction)
    error = _relative(theirs, clean, scale)
    excess = error - allowed.repeat_interleave(_chunk_size(clean.numel()))[: clean.numel()]
    worst = int(excess.argmax())
    answer: dict[str, Any] = {
        "passed": float(excess[worst]) <= 0,
        "error": float(error[worst]),
        "tolerance": float(allowed[worst // _chunk_size(clean.numel())]),
        "near": near,
        "left_out": int(jumps.sum()) if near else 0,
        "wrong": int((excess > 0).sum()),
    }
    if not answer["passed"]:
        answer["detail"] = f"{answer['wrong']} of {clean.numel()} elements are off; {_place(got, exact, worst)}"
    return answer


def _integers(exact: torch.Tensor, own: torch.Tensor, got: torch.Tensor) -> Plain:
    """Integers and booleans must equal torch's answer or the exact one (they differ only at ties)."""
    wide = got.long()
    wrong = ((wide != own.long()) & (wide != exact)).reshape(-1)
    count = int(wrong.sum())
    answer: dict[str, Any] = {
        "passed": count == 0,
        "error": float(count > 0),
        "tolerance": 0.0,
        "near": True,
        "wrong": count,
    }
    if count:
        at = int(wrong.nonzero()[0])
        answer["detail"] = f"{count} of {wrong.numel()} elements differ; {_place(got, exact, at)}"
    return answer


def _kind(tensor: torch.Tensor) -> torch.Tensor:
    """0 for finite, 1 for NaN, 2 and 3 for the infinities."""
    kind = torch.isnan(tensor).to(torch.int8)
    return kind + 2 * torch.isposinf(tensor).to(torch.int8) + 3 * torch.isneginf(tensor).to(torch.int8)


def _relative(value: torch.Tensor, exact: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    size = _chunk_size(exact.numel())
    return (value.double() - exact).abs() / scale.repeat_interleave(size)[: exact.numel()]


def _chunk_size(count: int) -> int:
    return min(CHUNK, max(1, count))


def _place(got: torch.Tensor, exact: torch.Tensor, at: int) -> str:
    index, rest = [], at
    for size in reversed(got.shape if got.ndim > 1 else (got.numel(),)):
        index.append(rest % size)
        rest //= size
    return f"at {index[::-1]} it is {got.reshape(-1)[at].item():.7g}, the answer is {exact.reshape(-1)[at].item():.7g}"


def _failure(got: torch.Tensor, own: torch.Tensor, at: int, words: str) -> Plain:
    return {
        "passed": False,
        "error": None,
        "tolerance": None,
        "near": True,
        "detail": f"{words}; {_place(got, own, at)}",
    }
