"""A runner: one model, reference or candidate alike, called when the judge says so, on inputs it can only read.

It gets bytes, never seeds, and gives back addresses. Nothing it says is believed: the judge reads the outputs from
this process's memory while it is frozen. What this module uses between *go* and *done* is taken before foreign code
runs, so that a patched name elsewhere doesn't reach it.
"""

from __future__ import annotations

import collections
import gc
import json
import mmap
import os
import struct
import time
import warnings
from typing import Any

import torch

from apps.kernels.inside import aborts, closed, extensions, guard, process_state, toolchain, values
from apps.kernels.inside.phases import close_building
from apps.kernels.inside.replaying import Watching
from apps.kernels.inside.source import explain, load_module
from apps.kernels.jail.channel import BYTES, HEADER, Channel, ChannelBroken
from apps.kernels.plain import Plain

ARENA, STATE, BUILT = 0, 1, 2
KEPT_ALIVE = (2, 2, 1, 1, 2, 1)  # windows whose outputs stay alive in a warm-up, one window after the other
REHEARSED, LONGEST = 12, 4  # windows of a warm-up, where they take no more than so many times its seconds
ENTRY = struct.Struct("<QI")  # one output: address, number of its layout
CLASSES = {"reference": ("problem", "Model"), "compiled": ("problem", "Model"), "candidate": ("candidate", "ModelNew")}
warnings.filterwarnings("ignore", message="The given buffer is not writable")


Alive = collections.deque[list[Any]]  # outputs of earlier windows


class _Wrong(Exception):
    """The model does not keep the contract; the message says how."""


def main(channel: Channel, payload: Plain) -> None:
    """Build in the open phase, close it, then serve calls."""
    stage, guarded = "import", False
    try:
        torch.set_num_threads(int(payload["threads"]))
        torch.set_grad_enabled(False)
        usual = process_state.snapshot()
        aborts.name_them()
        if payload["role"] == "empty":
            model: Any = _empty_model(payload["outputs"], payload["output_tree"])
        else:
            guarded = payload["guard"] and guard.install()
            toolchain.unpack(channel.files[BUILT])
            toolchain.prepare(payload)
            if payload["role"] == "candidate":
                closed.close()
                extensions.install(real_headers=bool((payload.get("extra") or {}).get("real_headers")))
            module_name, class_name = CLASSES[payload["role"]]
            module = load_module(module_name, payload["source"])
            channel.send({"stage": "imported"})
            stage = "construct"
            model = _construct(module, class_name, payload)
            names = _load_state(channel, model, payload)
            channel.send({"stage": "constructed", **names})
            stage = "prepare"
            if payload["role"] == "candidate" and callable(getattr(model, "prepare", None)):
                model.prepare()
            if payload["role"] == "compiled":
                model = torch.compile(model, dynamic=False)
            channel.send({"stage": "prepared"})
        stage = "warm up"
        inputs = _inputs(channel, payload)
        laid = [inputs[first] for first in payload["firsts"]]  # the others share these ones' pages, not their places
        if payload["role"] == "compiled":
            model(*laid[0])  # this builds it
        layouts, keys, alive = _warm_up(model, laid, float(payload["warm_seconds"]))
        channel.send({"stage": "warm", "buffers": _buffers(model, payload), "keys": keys, "guarded": guarded})
        if payload.get("observe"):
            channel.send({"stage": "observed", **_observed(model, inputs)})
    except Exception as problem:
        channel.send({"failed": explain(problem), "stage": stage, "rule": closed.rule_of(problem)})
        return
    message = channel.receive()  # the judge takes a copy of what was built, then says go on
    gc.collect()
    gc.freeze()
    if message.get("do") == "close":
        close_building()
        channel.send({"stage": "closed"})
    serve(channel, model, inputs, layouts, usual, alive)


def _construct(module: Any, class_name: str, payload: Plain) -> Any:
    if not hasattr(module, class_name):
        raise _Wrong(f"the source defines no class {class_name}")
    torch.manual_seed(int(payload["seed"]))
    init = values.decode(payload["init"], [])
    kind = getattr(module, class_name)
    model = kind(**init) if isinstance(init, dict) else kind(*init)
    if isinstance(model, torch.nn.Module):
        model.train(bool(payload["training"]))
    return model


def _load_state(channel: Channel, model: Any, payload: Plain) -> Plain:
    """Copy the reference's state in where names match; says which names did not."""
    specs = payload["state"]
    if not specs or not isinstance(model, torch.nn.Module):
        return {"missing": [s["name"] for s in specs], "bytes": 0}
    memory = mmap.mmap(channel.files[STATE], 0, prot=mmap.PROT_READ)
    own = model.state_dict()
    missing = []
    for spec in specs:
        target = own.get(spec["name"])
        if target is None:
            missing.append(spec["name"])
            continue
        if list(target.shape) != spec["shape"]:
            raise _Wrong(f"{spec['name']} has shape {tuple(target.shape)}; the reference's is {tuple(spec['shape'])}")
        if target.numel():
            target.copy_(values.over(memory, spec["at"], values.contiguous_spec(spec["dtype"], spec["shape"])))
    return {"missing": missing}


def _inputs(channel: Channel, payload: Plain) -> list[tuple[Any, ...]]:
    """The arguments of each placement, laid over pages that no runner can write."""
    placements = []
    regions: dict[tuple[int, int], Any] = {}
    for placement in payload["placements"]:
        tensors = []
        for spec, where in zip(payload["specs"], placement, strict=True):
            pages = (where["page"], where["size"])
            if pages not in regions:
                regions[pages] = values.guarded(channel.files[ARENA], *pages, writable=payload.get("private", False))
            region = regions[pages]
            tensors.append(values.over(region, where["at"] - where["page"], spec))
        placements.append(tuple(values.decode(payload["inputs"], tensors)))
    return placements


def _warm_up(model: Any, inputs: list[tuple[Any, ...]], seconds: float) -> tuple[Any, list[str], Alive]:
    """Call the model for some time on throw-away inputs: its outputs' layouts, dictionaries' keys, and what is still
    alive.

    Calls go in windows, and earlier windows' outputs stay alive, as they will when it is timed: the heap then has room for
    them on pages that have been touched. What an output leaves is too small for the next one, for which room to align is
    asked as well, so the first windows take new pages each; a fault costs as much as touching the page a thousand times.
    """
    layouts: dict[Any, int] = {}
    news: list[Plain] = []
    started = time.perf_counter()
    output = model(*inputs[0])
    _entries(output, layouts, news)
    keys = _keys(output)
    del output
    block = inputs[: max(1, len(inputs) - 1)]  # one set of inputs more lies there than a window takes
    alive: Alive = collections.deque()
    windows = 0
    while (taken := time.perf_counter() - started) < seconds or (windows < REHEARSED and taken < LONGEST * seconds):
        while len(alive) > KEPT_ALIVE[windows % len(KEPT_ALIVE)]:
            alive.popleft()
        alive.append([model(*arguments) for arguments in block])
        windows += 1
    return (layouts, news), keys, alive


def _empty_model(outputs: Plain, tree: Plain) -> Any:
    shapes = [(tuple(o["shape"]), values.DTYPES[o["dtype"]]) for o in outputs]

    def model(*_: Any) -> Any:
        return values.decode(tree, [torch.empty(shape, dtype=dtype) for shape, dtype in shapes])

    return model


def _buffers(model: Any, payload: Plain) -> Plain:
    """Addresses of the buffers that the reference updates, where the model has them by name."""
    if not isinstance(model, torch.nn.Module):
        return {}
    wanted = set(payload.get("updated") or ())
    return {n: b.data_ptr() for n, b in model.named_buffers() if n in wanted and b.is_contiguous()}


def _observed(model: Any, inputs: list[tuple[Any, ...]]) -> Plain:
    """What one call dispatches: operators by name with their number, products as called, bytes of new tensors."""
    with Watching() as seen:
        model(*inputs[0])
    return {"operators": seen.operators, "products": seen.products, "allocated": seen.allocated}


def _flatten(output: Any, into: list[Any]) -> None:
    if isinstance(output, list | tuple):
        for item in output:
            _flatten(item, into)
    elif isinstance(output, dict):
        for item in output.values():
            _flatten(item, into)
    else:
        into.append(output)


def _keys(output: Any) -> list[str]:
    """The keys of the dictionaries in an output, in the order in which its tensors are flattened."""
    if isinstance(output, dict):
        return [name for key, item in output.items() for name in (str(key), *_keys(item))]
    if isinstance(output, list | tuple):
        return [name for item in output for name in _keys(item)]
    return []


_TENSOR_TYPES = (torch.Tensor, torch.nn.Parameter)
_data_ptr, _stride, _is_neg = torch.Tensor.data_ptr, torch.Tensor.stride, torch.Tensor.is_neg


def _entries(output: Any, layouts: dict[Any, int], news: list[Plain]) -> list[tuple[int, int]]:
    if type(output) is torch.Tensor:  # by far the most common; quick
        flat = [output]
    else:
        flat = []
        _flatten(output, flat)
    found = []
    for tensor in flat:
        if type(tensor) not in _TENSOR_TYPES:
            key: Any = type(tensor).__name__
            address = 0
        else:
            key = (tensor.dtype, tensor.shape, _stride(tensor), tensor.device.type, _is_neg(tensor))
            address = _data_ptr(tensor)
        number = layouts.get(key)
        if number is None:
            number = layouts[key] = len(layouts)
            news.append(_layout(key))
        found.append((address, number))
    return found


def _layout(key: Any) -> Plain:
    if isinstance(key, str):
        return {"type": key}
    dtype, shape, stride, device, negated = key
    if negated:
        return {"type": "view that is negated when it is read"}
    return {"dtype": values.dtype_name(dtype), "shape": list(shape), "stride": list(stride), "device": device}


def serve(
    channel: Channel,
    model: Any,
    inputs: list[tuple[Any, ...]],
    known: Any,
    usual: dict[str, Plain],
    generations: Alive,
) -> None:
    """Call the model when told: a message of u16 (outputs to keep alive, then one placement a call)."""
    layouts, news = known
    receive, send, pack = channel.socket.recv, channel.socket.sendall, ENTRY.pack
    header, size, dumps = HEADER, HEADER.size, json.dumps
    while True:
        frame = receive(1 << 16)
        if not frame:
            return
        if frame[4] != BYTES:
            _other(channel, frame[size:], usual)
            continue
        orders = memoryview(frame)[size:].cast("H")
        keep = orders[0]
        while len(generations) > keep:
            generations.popleft()
        try:
            results = [model(*inputs[i]) for i in orders[1:]]
        except Exception as problem:
            channel.send({"failed": explain(problem), "stage": "call", "rule": closed.rule_of(problem)})
            continue
        found = [_entries(result, layouts, news) for result in results]
        generations.append(results)
        body = b"".join([pack(*entry) for entries in found for entry in entries])
        extra = dumps(news).encode() if news else b""
        news.clear()
        body = struct.pack("<I", len(body)) + body + extra
        send(header.pack(len(body), BYTES) + body)


def _other(channel: Channel, data: bytes, usual: dict[str, Plain]) -> None:
    """What is not a call: a change of threads, what the model has changed for the whole process, or the end."""
    message = json.loads(data)
    if message.get("do") == "threads":
        torch.set_num_threads(int(message["threads"]))
        channel.send({"threads": torch.get_num_threads()})
    elif message.get("do") == "state":
        now = process_state.snapshot(threads_started=True)
        channel.send({"changed": process_state.changed(usual, now)})
    elif message.get("do") == "repeat":
        raise ChannelBroken("no such order")
    else:
        os._exit(0)
