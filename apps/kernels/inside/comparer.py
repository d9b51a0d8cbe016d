"""The comparer: the judge's array work, in a jailed process that runs nothing of the problem's or the candidate's.

It sees raw bytes: the exact answer, torch's own answer, and what a candidate left in its memory.
"""

from __future__ import annotations

import mmap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch

from apps.kernels.inside import outputs, values
from apps.kernels.inside.mapped import Mapped
from apps.kernels.jail.channel import Channel, ChannelBroken
from apps.kernels.plain import Plain

EXPECT, RAW, BANK, LENT = 0, 1, 2, 3
PATTERN = (1 << 16) - 15  # a prime, so that rows of any usual length meet the pattern in different places
ALIKE = 16  # of a set that looks like another, one element in so many is changed
EDGE = 64  # and none of the first and last ones
WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
FLOATS = ("float16", "bfloat16", "float32", "float64")
MANTISSA = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}
ROWS_TO_SHARE = 16  # of a tensor, from which on several threads mix it
LEFT_ALONE = 3  # leading bits of a mantissa


@dataclass(frozen=True)
class Mixers:
    """Threads that mix, each of which computes alone."""

    pool: ThreadPoolExecutor
    count: int


def main(channel: Channel, payload: Plain) -> None:
    """Answer one comparison after the other until the judge goes."""
    torch.set_num_threads(int(payload["threads"]))
    memory = Mapped(channel.files)
    count = int(payload["mixers"])
    with ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        mixers = Mixers(pool, count)
        while True:
            try:
                message = channel.receive()
            except ChannelBroken:
                return
            if "mix" in message:
                torch.set_num_threads(1)
                channel.send(mix(memory[BANK], memory[LENT], message, mixers))
                continue
            if "hold" in message:
                channel.send({"held": len(memory[LENT])})
                continue
            torch.set_num_threads(int(payload["threads"]))
            channel.send(compare(memory[EXPECT], memory[RAW], message))


def mix(bank: mmap.mmap, arena: mmap.mmap, message: Plain, mixers: Mixers) -> Plain:
    """Element by element from one of two sets of inputs, by a secret pattern that repeats after PATTERN elements.

    Floating-point numbers are thinned besides, but in a set that shall look like another. Large tensors are shared among
    `mixers`: threads that sleep when they are done, where torch's own would go on spinning into the window that follows.
    """
    for base, donor, into, seed, alike, lent in message["mix"]:
        generator = torch.Generator().manual_seed(seed)
        pattern = torch.randint(0, ALIKE if alike else 2, (PATTERN,), generator=generator, dtype=torch.uint8) != 0
        for (size, dtype), one, two, out in zip(message["specs"], base, donor, into, strict=True):
            item = values.DTYPES[dtype].itemsize
            kept = None if alike else thinning(dtype, generator)
            count, words = size // item, WORDS[item]
            if count == 0:
                continue
            first, second = (torch.frombuffer(bank, dtype=words, count=count, offset=at) for at in (one, two))
            mixed = torch.frombuffer(arena if lent else bank, dtype=words, count=count, offset=out)
            _mix_tensor((first, second, mixed), pattern, kept, mixers)
            if alike:
                _keep_edges(first, mixed)
    return {"mixed": len(message["mix"])}


def thinning(dtype: str, generator: torch.Generator) -> torch.Tensor | None:
    """Masks that clear a random part of a float's lower mantissa, so that hardly a single element was seen before.

    A value then lies nearer to zero by an eighth at most, and keeps its sign and its power of two: whole numbers stay whole,
    and zero, one, infinities and what bounds a range on the inside stay what they are. None for other types.
    """
    if dtype not in FLOATS:
        return None
    words = WORDS[values.DTYPES[dtype].itemsize]
    lower = (1 << (MANTISSA[dtype] - LEFT_ALONE)) - 1
    halves = torch.randint(0, 1 << 32, (2, PATTERN), generator=generator)
    return ((halves[0] | (halves[1] << 32)) | ~lower).to(words)


def _mix_tensor(
    tensors: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    pattern: torch.Tensor,
    kept: torch.Tensor | None,
    mixers: Mixers,
) -> None:
    dtype, count = tensors[0].dtype, tensors[0].numel()
    keep = torch.where(pattern, torch.tensor(-1).to(dtype), torch.tensor(0, dtype=dtype))  # all bits, or none

    def rows(starts: range) -> None:  # a row fits the second-level cache; bit by bit is faster than choosing
        for start in starts:
            left, right, into = (tensor[start : start + PATTERN] for tensor in tensors)
            torch.bitwise_xor(left, right, out=into)
            into.bitwise_and_(keep[: into.numel()]).bitwise_xor_(right)
            if kept is not None:
                into.bitwise_and_(kept[: into.numel()])

    starts = range(0, count, PATTERN)
    if len(starts) < ROWS_TO_SHARE:
        rows(starts)
        return
    each = -(-len(starts) // mixers.count)
    list(mixers.pool.map(rows, [starts[at : at + each] for at in range(0, len(starts), each)]))


def _keep_edges(first: torch.Tensor, mixed: torch.Tensor) -> None:
    """The first and the last elements as they were: where somebody who looks at a few would look."""
    edge = min(EDGE, mixed.numel() // 8)
    mixed[:edge] = first[:edge]
    mixed[mixed.numel() - edge :] = first[mixed.numel() - edge :]


def compare(expect: mmap.mmap, raw: mmap.mmap, message: Plain) -> Plain:
    """Hold each output against its answer; the first that fails names the place."""
    results = []
    for item in message["outputs"]:
        wide = "int64" if item["dtype"] not in FLOATS else "float64"
        exact = values.over(expect, item["exact"], values.contiguous_spec(wide, item["shape"]))
        own = values.over(expect, item["own"], values.contiguous_spec(item["dtype"], item["shape"]))
        got = values.over(raw, item["got"], {"dtype": item["dtype"], "shape": item["shape"], "stride": item["stride"]})
        found = outputs.judge(
            exact,
            own,
            got,
            int(item["reduction"]),
            near=float(message["near"]),
            drifts=bool(message["drifts"]),
            jumps=_jumps(expect, item),
            scores=_scores(expect, item),
            overlaid=bool(message.get("overlaid")),
        )
        results.append(found)
    return {"outputs": results}


def _jumps(expect: mmap.mmap, item: Plain) -> torch.Tensor | None:
    """Which elements lie at a discontinuity, where the oracle said."""
    if "jumps" not in item:
        return None
    return values.over(expect, item["jumps"], values.contiguous_spec("bool", item["shape"]))


def _scores(expect: mmap.mmap, item: Plain) -> outputs.Scores | None:
    """What an output of indices selects from."""
    said = item.get("scores")
    if said is None:
        return None
    chosen = values.over(expect, said["at"], values.contiguous_spec("float64", [said["rows"], said["n"]]))
    return outputs.Scores(chosen, said["dim"], said["limit"], said["ordered"])
