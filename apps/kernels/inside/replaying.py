"""Products and convolutions of the library, called again on random numbers of the shapes they were seen with."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import torch

from apps.kernels.inside import reductions, values
from apps.kernels.jail.channel import Channel, ChannelBroken
from apps.kernels.plain import Plain

# Making a tensor that is filled with one number: replayed as that filling alone.
ZERO, FILL = "aten.zero_.default", "aten.fill_.Scalar"
FILLED_BY = {
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros", "zero_"), ZERO),
    **dict.fromkeys(("ones", "ones_like", "new_ones", "full", "full_like", "new_full", "fill_"), FILL),
}
MOST = 32  # different calls that are kept of one call of a model


class Watching(reductions.Counting):
    """Counts as `Counting` does, but for what works on single numbers (a count of calls); keeps the products and convolutions
    it sees as plain data.
    """

    def __init__(self) -> None:
        super().__init__()
        self.products: list[Plain] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if reductions.is_product(str(func)):
            self._keep(str(func), args, kwargs or {})
        result = super().__torch_dispatch__(func, types, args, kwargs)
        if (fill := FILLED_BY.get(str(func).split(".")[1])) and isinstance(result, torch.Tensor):
            self._keep(fill, (result, *([0] if fill == FILL else [])), {})
        return result

    def is_counted(self, args: Any, kwargs: Any, result: Any) -> bool:
        """Whether any of its tensors holds more than one number."""
        return any(tensor.numel() > 1 for tensor in reductions.tensors_in((args, kwargs, result)))

    def _keep(self, name: str, args: Any, kwargs: Any) -> None:
        tensors: list[torch.Tensor] = []
        try:
            call = {"name": name, "args": values.encode(list(args), tensors), "kwargs": values.encode(kwargs, tensors)}
            call["specs"] = [values.describe(tensor) for tensor in tensors]
        except values.NotPlain:
            return
        if call not in self.products and len(self.products) < MOST:
            self.products.append(call)


def main(channel: Channel, payload: Plain) -> None:
    """Make the calls again for as many seconds as the judge says, each time it says so."""
    torch.set_num_threads(int(payload["threads"]))
    torch.set_grad_enabled(False)
    if payload["precision"]:  # the reference's: fewer bits run other code
        torch.set_float32_matmul_precision(payload["precision"])
    calls = list(_that_work(payload["calls"][:MOST]))
    channel.send({"ready": len(calls)})
    while True:
        try:
            seconds = float(channel.receive()["seconds"])
        except ChannelBroken:
            return
        end, times = time.monotonic() + seconds, 0
        while calls and time.monotonic() < end:
            for call in calls:
                call()
            times += 1
        channel.send({"times": times})


def _that_work(described: Iterable[Plain]) -> Iterator[Callable[[], object]]:
    """The calls that can be made here: one that can't, for want of memory or because nobody made it so, hinders no other."""
    for one in described:
        with suppress(Exception):
            if reductions.is_product(str(one["name"])) or one["name"] in FILLED_BY.values():
                call = _call(one)
                call()
                yield call


def _call(call: Plain) -> Callable[[], object]:
    space, name, overload = str(call["name"]).split(".")
    operator = getattr(getattr(getattr(torch.ops, space), name), overload)
    tensors = [_random(spec) for spec in call["specs"]]
    args, kwargs = values.decode(call["args"], tensors), values.decode(call["kwargs"], tensors)
    return lambda: operator(*args, **kwargs)


def _random(spec: Plain) -> torch.Tensor:
    dtype, shape, stride = values.DTYPES[spec["dtype"]], tuple(spec["shape"]), tuple(spec["stride"])
    numbers = torch.randn(max(1, values.span_of(shape, stride)))
    return numbers.to(dtype).as_strided(shape, stride)
