"""The oracle: runs the problem's own code, jailed; makes inputs, the float64 answer and torch's own float32 answer.

One message, one answer; arrays lie in memory files that the judge made: BANK (sets of inputs), EXPECT (answers), STATE
(parameters and buffers).
"""

from __future__ import annotations

import copy
import mmap
import re
import time
from types import ModuleType
from typing import Any

import torch

from apps.kernels.inside import draws, reductions, values
from apps.kernels.inside.source import explain, load_module
from apps.kernels.jail.channel import Channel, ChannelBroken
from apps.kernels.plain import Plain

BANK, EXPECT, STATE = 0, 1, 2
SMALL = 1 << 21  # elements
REQUIRED = ("Model", "get_inputs", "get_init_inputs")


class Refused(Exception):
    """The problem can't be judged honestly; the message says why."""


def main(channel: Channel, payload: Plain) -> None:
    """Open the problem, then answer the judge until it goes."""
    torch.set_num_threads(int(payload["threads"]))
    oracle = Oracle(channel, payload)
    try:
        channel.send(oracle.open())
    except Refused as refusal:
        channel.send({"refused": str(refusal)})
        return
    except Exception as problem:
        channel.send({"refused": _too_large(problem) or f"it raised:\n{explain(problem)}"})
        return
    while True:
        try:
            message = channel.receive()
        except ChannelBroken:
            return
        try:
            channel.send(getattr(oracle, f"do_{message['do']}")(message))
        except Exception as problem:
            channel.send({"error": explain(problem)})


class Oracle:
    """The problem, open: its model under the current state, and where its arrays lie."""

    def __init__(self, channel: Channel, payload: Plain) -> None:
        self.channel = channel
        self.payload = payload
        self.seed = int(payload["seed"])
        self.module: ModuleType
        self.init: Any = None
        self.tree: Plain = None
        self.specs: list[Plain] = []
        self.buffers_before: dict[str, torch.Tensor] = {}
        self.model: torch.nn.Module
        self.in_double: torch.nn.Module | None = None

    # -- opening -----------------------------------------------------------------------------------------------------

    def open(self) -> Plain:
        """Everything the judge must know before anything is judged. Raises `Refused`."""
        started = time.perf_counter()
        self.module = load_module("problem", self.payload["source"])
        for name in REQUIRED:
            if not hasattr(self.module, name):
                raise Refused(f"the problem defines no {name}")
        torch.manual_seed(self.seed)
        self.init = self.module.get_init_inputs()
        init_tensors: list[torch.Tensor] = []
        try:
            init_tree = values.encode(self.init, init_tensors)
            if init_tensors:
                raise values.NotPlain("a tensor")
            inputs = self._draw_inputs(self.seed + 1)
            tensors: list[torch.Tensor] = []
            self.tree = values.encode(list(inputs), tensors)
            self.specs = [values.describe(t) for t in tensors]
        except values.NotPlain as problem:
            raise Refused(f"inputs must be tensors and plain values, not {problem}") from None
        self._construct(self.seed)
        facts = self._try_forward(inputs, tensors)
        parameters = [{"name": n, **values.describe(t)} for n, t in self.model.state_dict().items()]
        return {
            "init": init_tree,
            "inputs": self.tree,
            "specs": self.specs,
            "state": parameters,
            "training": self.model.training,
            "seconds": time.perf_counter() - started,
            **facts,
        }

    def _draw_inputs(self, seed: int) -> Any:
        torch.manual_seed(seed)
        inputs = self.module.get_inputs()
        if not isinstance(inputs, list | tuple):
            raise Refused("get_inputs must return a list of forward's arguments")
        return inputs

    def _construct(self, seed: int) -> None:
        torch.manual_seed(seed)
        init = self.init
        self.model = self.module.Model(**init) if isinstance(init, dict) else self.module.Model(*init)
        self._remember()

    def _remember(self) -> None:
        self.buffers_before = {n: b.detach().clone() for n, b in self.model.named_buffers()}
        self.in_double = None

    def _try_forward(self, inputs: Any, tensors: list[torch.Tensor]) -> Plain:
        before = [t.clone() for t in tensors]
        first, counted = self._forward(self.seed, inputs, count=True)
        for index, (old, new) in enumerate(zip(before, tensors, strict=True)):
            if not torch.equal(old.nan_to_num() if old.is_floating_point() else old, _plain(new)):
                raise Refused(f"forward changes its input {index} in place; return a new tensor instead")
        updated = [n for n, b in self.model.named_buffers() if not torch.equal(b, self.buffers_before[n])]
        self._restore()
        if sum(t.numel() for t in tensors) < SMALL:
            torch.set_num_threads(1)  # a small answer isn't worth threads that go on spinning beside other processes
        second, _ = self._forward(self.seed + 7, inputs)
        self._restore()
        if _differ(first, second):
            raise Refused("its output is random: the same inputs gave different outputs")
        outputs: list[torch.Tensor] = []
        try:
            tree = values.encode(first, outputs)
            specs = [values.describe(t) for t in outputs]
        except values.NotPlain as problem:
            raise Refused(f"forward must return tensors, not {problem}") from None
        if not outputs or not any(t.numel() for t in outputs):
            raise Refused("forward returns no tensor with elements")
        kept = [*tensors, *self.model.state_dict().values()]
        pointers = {t.untyped_storage().data_ptr() for t in kept}
        return {
            "outputs": specs,
            "output_tree": tree,
            "reduction": counted.longest if counted else 1,
            "operators": counted.operators if counted else {},
            "returns_view": any(t.untyped_storage().data_ptr() in pointers for t in outputs),
            "updated": updated,
            "double": self._double_works(inputs),
        }

    def _double_works(self, inputs: Any) -> bool:
        try:
            self._forward_double(inputs)
        except Exception:
            return False
        finally:
            self._restore()
        return True

    # -- answering ---------------------------------------------------------------------------------------------------

    def do_draw(self, message: Plain) -> Plain:
        """Draw inputs under a seed, reshape their distribution, write them to the bank."""
        tensors: list[torch.Tensor] = []
        tree = values.encode(list(self._draw_inputs(message["seed"])), tensors)
        if [values.describe(t) for t in tensors] != self.specs or tree != self.tree:
            return {"refused": "get_inputs gives other shapes or values each time; they must not depend on chance"}
        generator = torch.Generator().manual_seed(message["seed"] ^ 0x5EED)
        self._map(BANK)
        for tensor, spec, offset in zip(tensors, self.specs, message["offsets"], strict=True):
            values.over(self._map(BANK), offset, spec).copy_(draws.reshape(tensor, message["how"], generator))
        return {"drawn": True}

    def do_answer(self, message: Plain) -> Plain:
        """Both answers for the inputs that lie in the bank; says whether torch's own float32 is near float64 there."""
        started = time.perf_counter()
        bank = self._map(BANK)
        pairs = zip(self.specs, message["offsets"], strict=True)
        inputs = values.decode(self.tree, [values.over(bank, offset, spec).clone() for spec, offset in pairs])
        self._load_buffers(message.get("buffers"))
        single, _ = self._forward(self.seed, inputs)
        buffers = self._write_buffers(message.get("buffers"))
        self._restore()
        double = self._forward_double(inputs) if message["double"] else single
        self._restore()
        expect = self._map(EXPECT)
        mine: list[torch.Tensor] = []
        exact: list[torch.Tensor] = []
        values.encode(single, mine)
        values.encode(double, exact)
        for place, own, true in zip(message["places"], mine, exact, strict=True):
            wide = "float64" if own.is_floating_point() else "int64"
            shape = list(own.shape)
            values.over(expect, place["exact"], values.contiguous_spec(wide, shape)).copy_(true)
            spec = values.contiguous_spec(values.dtype_name(own.dtype), shape)
            values.over(expect, place["own"], spec).copy_(own)
        finite = all(bool(torch.isfinite(t).all()) for t in exact if t.is_floating_point())
        return {"finite": finite, "buffers": buffers, "seconds": time.perf_counter() - started}

    def do_state(self, message: Plain) -> Plain:
        """Construct the model under a seed, alter its parameters if asked, write its state for the runners."""
        self._construct(message["seed"])
        if message.get("alter") is not None:
            draws.alter_state(self.model, torch.Generator().manual_seed(message["alter"]))
            self._remember()
        state = self._map(STATE)
        for name, tensor in self.model.state_dict().items():
            spec = values.contiguous_spec(values.dtype_name(tensor.dtype), list(tensor.shape))
            if tensor.numel():
                values.over(state, message["places"][name], spec).copy_(tensor)
        return {"written": True}

    def do_depends(self, message: Plain) -> Plain:
        """The share of each input's elements on which the output is seen to depend, by changing blocks of it."""
        bank = self._map(BANK)
        given = [values.over(bank, o, s).clone() for s, o in zip(self.specs, message["offsets"], strict=True)]
        other = [values.over(bank, o, s).clone() for s, o in zip(self.specs, message["others"], strict=True)]
        return {"shares": [self._dependence(i, given, other, message["blocks"]) for i in range(len(given))]}

    def _dependence(self, index: int, given: list[torch.Tensor], other: list[torch.Tensor], blocks: int) -> float:
        tensor = given[index]
        if not tensor.is_contiguous() or tensor.numel() == 0:
            return 0.0
        base, _ = self._forward(self.seed, values.decode(self.tree, given))
        self._restore()
        flat, donor = tensor.view(-1), other[index].reshape(-1)
        size = max(1, -(-tensor.numel() // blocks))
        seen = tried = 0
        for start in range(0, tensor.numel(), size):
            old = flat[start : start + size].clone()
            fresh = donor[start : start + size]
            tried += 1
            if torch.equal(old, fresh):
                continue
            flat[start : start + size] = fresh
            changed, _ = self._forward(self.seed, values.decode(self.tree, given))
            self._restore()
            flat[start : start + size] = old
            seen += _differ(base, changed, exactly=True)
        return seen / max(1, tried)

    # -- the model ---------------------------------------------------------------------------------------------------

    def _forward(self, seed: int, inputs: Any, *, count: bool = False) -> tuple[Any, reductions.Counting | None]:
        torch.manual_seed(seed)
        counting = reductions.Counting() if count else None
        with torch.no_grad():
            if counting is None:
                return self.model(*inputs), None
            with counting:
                return self.model(*inputs), counting

    def _forward_double(self, inputs: Any) -> Any:
        if self.in_double is None:
            self.in_double = copy.deepcopy(self.model).double()
            self.in_double.train(self.model.training)
            self.double_buffers = {n: b.detach().clone() for n, b in self.in_double.named_buffers()}
        torch.manual_seed(self.seed)
        torch.set_default_dtype(torch.float64)
        try:
            with torch.no_grad():
                result = self.in_double(*_as_double(inputs))
        finally:
            torch.set_default_dtype(torch.float32)
        for name, buffer in self.in_double.named_buffers():
            buffer.copy_(self.double_buffers[name])
        return result

    def _restore(self) -> None:
        for name, buffer in self.model.named_buffers():
            buffer.copy_(self.buffers_before[name])

    def _load_buffers(self, places: Plain) -> None:
        if not places:
            return
        state = self._map(STATE)
        for name, buffer in self.model.named_buffers():
            if name in places:
                spec = values.contiguous_spec(values.dtype_name(buffer.dtype), list(buffer.shape))
                buffer.copy_(values.over(state, places[name], spec))

    def _write_buffers(self, places: Plain) -> bool:
        if not places:
            return False
        state = self._map(STATE)
        for name, buffer in self.model.named_buffers():
            if name in places:
                spec = values.contiguous_spec(values.dtype_name(buffer.dtype), list(buffer.shape))
                values.over(state, places[name], spec).copy_(buffer)
        return True

    def _map(self, which: int) -> mmap.mmap:
        """The memory file as it is now; the judge may have made it longer since."""
        return mmap.mmap(self.channel.files[which], 0)


def _too_large(problem: Exception) -> str | None:
    """In words, where memory ran out."""
    if isinstance(problem, MemoryError):
        return "it needs more memory than judging here may take. Choose smaller sizes"
    asked = re.search(r"you tried to allocate (\d+) bytes", str(problem))
    if asked is None:
        return None
    return (
        f"one of its tensors takes {int(asked[1]) / 1e9:.4g} GB, more than judging here may take. Choose smaller sizes"
    )


def _tensors_of(value: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    values.encode(value, found)
    return found


def _as_double(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, list | tuple):
        return type(value)([_as_double(item) for item in value])
    if isinstance(value, dict):
        return {key: _as_double(item) for key, item in value.items()}
    return value


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.nan_to_num() if tensor.is_floating_point() else tensor


def _differ(first: Any, second: Any, *, exactly: bool = False) -> bool:
    for one, two in zip(_tensors_of(first), _tensors_of(second), strict=False):
        if one.shape != two.shape:
            return True
        if exactly or not one.is_floating_point():
            if not torch.equal(_plain(one), _plain(two)):
                return True
            continue
        scale = float(_plain(one).abs().max()) if one.numel() else 0.0
        if one.numel() and float((_plain(one) - _plain(two)).abs().max()) > 1e-3 * scale:
            return True
    return False
