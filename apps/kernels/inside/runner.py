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
from apps.kernels.jail.channel import BYTES, HEADER, Channel
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
        inputs = _inputs(channel, payload)
        os.close(
            channel.files[ARENA]
        )  # before foreign code runs: who read it by its descriptor would be seen by nobody
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
        laid = [inputs[first] for first in payload["firsts"]]  # the others share these ones' pages, not their places
        if payload["role"] == "compiled":
            model(*laid[0])  # this builds it
        layouts, nested, alive = _warm_up(model, laid, float(payload["warm_seconds"]))
        watched = Watched(model, payload)
        channel.send({"stage": "warm", "buffers": watched.named(), "nesting": nested, "guarded": guarded})
        if payload.get("observe"):
            channel.send({"stage": "observed", **_observed(model, inputs), "buffers": watched.named()})
    except Exception as problem:
        channel.send({"failed": explain(problem), "stage": stage, "rule": closed.rule_of(problem)})
        return
    message = channel.receive()  # the judge takes a copy of what was built, then says go on
    gc.collect()
    gc.freeze()
    if message.get("do") == "close":
        close_building()
        channel.send({"stage": "closed"})
    serve(channel, model, inputs, layouts, usual, alive, watched)


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
    """Copy the reference's state in where names match; says which did not, and what has their values by another name."""
    specs = payload["state"]
    if not specs or not isinstance(model, torch.nn.Module):
        return {"missing": [s["name"] for s in specs]}
    memory = mmap.mmap(channel.files[STATE], 0, prot=mmap.PROT_READ)
    own, known = model.state_dict(), {spec["name"] for spec in specs}
    renamed = dict((payload.get("extra") or {}).get("renamed") or {})
    others = {name: tensor for name, tensor in own.items() if name not in known and name not in renamed.values()}
    missing = []
    for spec in specs:
        name = spec["name"]
        given = values.over(memory, spec["at"], values.contiguous_spec(spec["dtype"], spec["shape"]))
        target = own.get(name)
        if target is None and name not in renamed and (found := _same_in(others, given)):
            renamed[name] = found
            others.pop(found)
        if target is None and (target := own.get(renamed.get(name, ""))) is None:
            missing.append(name)
            continue
        if list(target.shape) != spec["shape"]:
            raise _Wrong(f"{name} has shape {tuple(target.shape)}; the reference's is {tuple(spec['shape'])}")
        if target.numel():
            target.copy_(given)
    return {"missing": missing, "renamed": renamed}


def _same_in(others: dict[str, torch.Tensor], given: torch.Tensor) -> str | None:
    """The first of these that has the same type, shape and values: whoever named it otherwise made it alike."""
    for name, tensor in others.items():
        if tensor.dtype == given.dtype and tensor.shape == given.shape and torch.equal(tensor, given):
            return name
    return None


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


def _warm_up(model: Any, inputs: list[tuple[Any, ...]], seconds: float) -> tuple[Any, Plain, Alive]:
    """Call the model for some time on throw-away inputs: its outputs' layouts, how they are nested, and what is still alive.

    Calls go in windows, and earlier windows' outputs stay alive, as they will when it is timed: the heap then has room for
    them on pages that have been touched. What an output leaves is too small for the next one, for which room to align is
    asked as well, so the first windows take new pages each; a fault costs as much as touching the page a thousand times.
    """
    layouts: dict[Any, int] = {}
    news: list[Plain] = []
    started = time.perf_counter()
    output = model(*inputs[0])
    _entries(output, layouts, news)
    nested = nesting(output)
    del output
    block = inputs[: max(1, len(inputs) - 1)]  # one set of inputs more lies there than a window takes
    alive: Alive = collections.deque()
    windows = 0
    while (taken := time.perf_counter() - started) < seconds or (windows < REHEARSED and taken < LONGEST * seconds):
        while len(alive) > KEPT_ALIVE[windows % len(KEPT_ALIVE)]:
            alive.popleft()
        alive.append([model(*arguments) for arguments in block])
        windows += 1
    return (layouts, news), nested, alive


def _empty_model(outputs: Plain, tree: Plain) -> Any:
    shapes = [(tuple(o["shape"]), values.DTYPES[o["dtype"]]) for o in outputs]

    def model(*_: Any) -> Any:
        return values.decode(tree, [torch.empty(shape, dtype=dtype) for shape, dtype in shapes])

    return model


def _observed(model: Any, inputs: list[tuple[Any, ...]]) -> Plain:
    """What one call dispatches: operators by name with their number, products as called, bytes of new tensors."""
    with Watching() as seen:
        model(*inputs[0])
    return {"operators": seen.operators, "products": seen.products, "allocated": seen.allocated}


_PLAIN = (type(None), bool, int, float, str)


def _by_key(item: tuple[Any, Any]) -> str:
    return str(item[0])


def _flatten(output: Any, into: list[Any]) -> None:
    if isinstance(output, list | tuple):
        for item in output:
            _flatten(item, into)
    elif isinstance(output, dict):
        for _, item in sorted(output.items(), key=_by_key):
            _flatten(item, into)
    elif type(output) not in _PLAIN:  # those are known from the warm-up
        into.append(output)


def nesting(output: Any) -> Plain:
    """How tensors lie in an output: a list for lists and tuples, a dictionary, "t" for what is no plain value."""
    if isinstance(output, list | tuple):
        return [nesting(item) for item in output]
    if isinstance(output, dict):
        return {str(key): nesting(item) for key, item in output.items()}
    return str(output) if type(output) in _PLAIN else "t"


_TENSOR_TYPES = (torch.Tensor, torch.nn.Parameter)
_data_ptr, _stride, _is_neg = torch.Tensor.data_ptr, torch.Tensor.stride, torch.Tensor.is_neg
_is_contiguous = torch.Tensor.is_contiguous


class Watched:
    """The buffers that the reference updates, as the model has them: a call may put another tensor in the place of one."""

    def __init__(self, model: Any, payload: Plain) -> None:
        self._names: list[str] = list(payload.get("updated") or ()) if isinstance(model, torch.nn.Module) else []
        self._holders = [self._holder(model, name) for name in self._names]
        self._last: list[int] = []

    @staticmethod
    def _holder(model: torch.nn.Module, name: str) -> tuple[dict[str, Any], str]:
        """The dictionary of the module that holds a buffer, and its name there; an empty one where there is none."""
        path, _, own = name.rpartition(".")
        try:
            return model.get_submodule(path)._buffers, own
        except AttributeError:
            return {}, own

    def addresses(self) -> list[int]:
        """Where they lie now; 0 for one that is none."""
        found = []
        for holder, name in self._holders:
            buffer = holder.get(name)
            good = type(buffer) in _TENSOR_TYPES and _is_contiguous(buffer)
            found.append(_data_ptr(buffer) if good else 0)
        return found

    def named(self) -> dict[str, int]:
        """The same by name."""
        self._last = self.addresses()
        return dict(zip(self._names, self._last, strict=True))

    @property
    def moved(self) -> dict[str, int]:
        """Where they lie, if that is elsewhere than when it was asked last; else nothing."""
        return self.named() if self._names and self.addresses() != self._last else {}


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
    watched: Watched,
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
        moved = watched.moved
        extra = dumps({"layouts": news, "buffers": moved}).encode() if news or moved else b""
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
    else:
        os._exit(0)
