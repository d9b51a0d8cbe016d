"""The oracle: runs the problem's own code, jailed; makes inputs, the float64 answer and torch's own float32 answer.

One message, one answer; arrays lie in memory files that the judge made: BANK (sets of inputs), EXPECT (answers), STATE
(parameters and buffers).
"""

from __future__ import annotations

import copy
import math
import mmap
import re
import time
from contextlib import nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from apps.kernels.inside import draws, outputs, process_state, reductions, strength, values
from apps.kernels.inside.mapped import Mapped
from apps.kernels.inside.outputs import Scores
from apps.kernels.inside.selecting import Chosen, Selecting
from apps.kernels.inside.source import explain, load_module
from apps.kernels.jail.channel import Channel, ChannelBroken
from apps.kernels.plain import Plain

BANK, EXPECT, STATE = 0, 1, 2
SMALL = 1 << 21  # elements
REQUIRED = ("Model", "get_inputs", "get_init_inputs")
RANDOM, SURELY_RANDOM = 1e-5, 1e-3  # relative to scale: two calls on the same inputs differ by this much
NUDGES = 2  # random changes of the inputs that show which elements lie at a discontinuity
NUDGE = 8  # how large they are, in units in the last place


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


@dataclass
class Answered:
    """Both answers for one set of inputs, output by output; what indices select from; which elements may jump."""

    own: list[torch.Tensor]
    exact: list[torch.Tensor]
    scores: list[Scores | None]
    jumps: list[torch.Tensor | None]


class Oracle:
    """The problem, open: its model under the current state, and where its arrays lie."""

    def __init__(self, channel: Channel, payload: Plain) -> None:
        self.channel = channel
        self.memory = Mapped(channel.files)
        self.payload = payload
        self.seed = int(payload["seed"])
        self.module: ModuleType
        self.init: Any = None
        self.tree: Plain = None
        self.specs: list[Plain] = []
        self.buffers_before: dict[str, torch.Tensor] = {}
        self.model: torch.nn.Module
        self.in_double: torch.nn.Module | None = None
        self.selects: list[Plain] = []
        self.double = False
        self.reduction = 1
        self.near = outputs.NEAR

    # -- opening -----------------------------------------------------------------------------------------------------

    def open(self) -> Plain:
        """Everything the judge must know before anything is judged. Raises `Refused`."""
        started = time.perf_counter()
        before = process_state.snapshot()
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
        state = process_state.changed(before, process_state.snapshot())
        if any("precision" in name for name in state):
            self.near = outputs.NEAR_REDUCED
        parameters = [{"name": n, **values.describe(t)} for n, t in self.model.state_dict().items()]
        return {
            "init": init_tree,
            "inputs": self.tree,
            "specs": self.specs,
            "state": parameters,
            "training": self.model.training,
            "process_state": {name: now for name, (_, now) in state.items()},
            "near": self.near,
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
        if self._is_random(first, inputs):
            raise Refused("its output is random: the same inputs gave different outputs")
        returned: list[torch.Tensor] = []
        try:
            tree = values.encode(first, returned)
            specs = [values.describe(t) for t in returned]
        except values.NotPlain as problem:
            raise Refused(f"forward must return tensors, not {problem}") from None
        if not returned or not any(t.numel() for t in returned):
            raise Refused("forward returns no tensor with elements")
        self.selects = self._what_is_selected(inputs, returned)
        self.reduction = counted.longest if counted else 1
        self.double = self._double_works(inputs)
        kept = [*tensors, *self.model.state_dict().values()]
        pointers = {t.untyped_storage().data_ptr() for t in kept}
        return {
            "outputs": specs,
            "output_tree": tree,
            "selects": self.selects,
            "reduction": self.reduction,
            "operators": counted.operators if counted else {},
            "allocated": counted.allocated if counted else 0,
            "returns_view": any(t.untyped_storage().data_ptr() in pointers for t in returned),
            "updated": updated,
            "double": self.double,
        }

    def _is_random(self, first: Any, inputs: Any) -> bool:
        """Whether other random numbers give another output; where it is close, whether the same ones don't."""
        second, _ = self._forward(self.seed + 7, inputs)
        self._restore()
        apart = _distance(first, second)
        if not RANDOM < apart <= SURELY_RANDOM:
            return apart > RANDOM
        again, _ = self._forward(self.seed + 7, inputs)
        self._restore()
        return apart > 8 * _distance(second, again)

    def _what_is_selected(self, inputs: Any, returned: list[torch.Tensor]) -> list[Plain]:
        """For each output of indices the rows they select from, None for any other output."""
        if all(t.is_floating_point() or t.dtype == torch.bool for t in returned):
            return [None] * len(returned)
        chosen = self._choices(self._forward, self.seed, inputs)[1]
        found: list[Plain] = []
        for tensor, one in zip(returned, chosen, strict=True):
            rows = one.rows() if one is not None else None
            if one is None or rows is None or rows.shape[1] == 0 or tensor.numel() % max(1, rows.shape[0]):
                found.append(None)
                continue
            dim = one.axis if one.several else None
            found.append({"rows": rows.shape[0], "n": rows.shape[1], "dim": dim, "ordered": one.ordered})
        return found

    def _choices(self, forward: Any, *arguments: Any) -> tuple[list[torch.Tensor], list[Chosen | None]]:
        """A call's outputs, and for each of indices what it selects from."""
        with Selecting() as selecting:
            result = forward(*arguments)
        self._restore()
        returned = _tensors_of(result[0] if forward == self._forward else result)
        return returned, [selecting.of(t) for t in returned]

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
        tensors = [values.over(bank, offset, spec).clone() for spec, offset in pairs]
        self._load_buffers(message.get("buffers"))
        found = self.answer(tensors, jumps=bool(message.get("jumps")), buffers=message.get("buffers"))
        expect = self._map(EXPECT)
        said: list[Plain] = []
        for place, own, exact, scores, jumps in zip(
            message["places"], found.own, found.exact, found.scores, found.jumps, strict=True
        ):
            wide = "float64" if own.is_floating_point() else "int64"
            shape = list(own.shape)
            values.over(expect, place["exact"], values.contiguous_spec(wide, shape)).copy_(exact)
            spec = values.contiguous_spec(values.dtype_name(own.dtype), shape)
            values.over(expect, place["own"], spec).copy_(own)
            if jumps is not None:
                values.over(expect, place["jumps"], values.contiguous_spec("bool", shape)).copy_(jumps)
            if scores is not None:
                spec = values.contiguous_spec("float64", list(scores.values.shape))
                values.over(expect, place["scores"], spec).copy_(scores.values)
            said.append({"jumps": jumps is not None, "limit": scores.limit if scores is not None else None})
        finite = all(bool(torch.isfinite(t).all()) for t in found.exact if t.is_floating_point())
        buffers = bool(message.get("buffers"))
        return {"finite": finite, "buffers": buffers, "outputs": said, "seconds": time.perf_counter() - started}

    def answer(self, tensors: list[torch.Tensor], *, jumps: bool = False, buffers: Plain = None) -> Answered:
        """Torch's own answer and the float64 one, from these inputs and the buffers as they are."""
        inputs = values.decode(self.tree, tensors)
        choosing = any(self.selects)
        with Selecting() if choosing else nullcontext() as selecting:
            own = _tensors_of(self._forward(self.seed, inputs)[0])
        mine = [selecting.of(t) for t in own] if selecting else [None] * len(own)
        self._write_buffers(buffers)
        self._restore()
        if not self.double:
            scores = [self._scores(spec, one, one) for spec, one in zip(self.selects, mine, strict=True)]
            return Answered(own, own, scores, self._jumps(tensors, own, scores) if jumps else [None] * len(own))
        with Selecting() if choosing else nullcontext() as selecting:
            exact = _tensors_of(self._forward_double(inputs))
        true = [selecting.of(t) for t in exact] if selecting else [None] * len(own)
        scores = [self._scores(*row) for row in zip(self.selects, mine, true, strict=True)]
        return Answered(own, exact, scores, self._jumps(tensors, exact, scores) if jumps else [None] * len(own))

    def _scores(self, spec: Plain, mine: Chosen | None, true: Chosen | None) -> Scores | None:
        """What an output's indices select from, and how much worse than the best is within rounding."""
        if spec is None or mine is None or true is None:
            return None
        exact, own = true.rows().double(), mine.rows()
        limit = 0.0
        if own.is_floating_point():
            eps = torch.finfo(own.dtype).eps
            scale = exact.abs().nan_to_num(posinf=0.0).amax(1, keepdim=True).clamp_min(torch.finfo(own.dtype).tiny)
            error = float(((own.double() - exact).abs() / scale).nan_to_num(posinf=0.0).max())
            rounding = max(outputs.screening.ULPS, 0.5 * math.sqrt(self.reduction)) * eps
            limit = max(outputs.screening.OWN_ERROR_FACTOR * min(error, self.near), rounding)
        return Scores(exact, spec["dim"], limit, bool(spec["ordered"]))

    def _jumps(
        self, tensors: list[torch.Tensor], exact: list[torch.Tensor], scores: list[Scores | None]
    ) -> list[torch.Tensor | None]:
        """Elements that change by more than rounding when the inputs change by no more: they lie at a discontinuity."""
        found = [None if s is not None else torch.zeros(t.shape, dtype=torch.bool) for t, s in zip(exact, scores)]
        eps = max((torch.finfo(t.dtype).eps for t in tensors if t.is_floating_point()), default=2.0**-23)
        for seed in range(NUDGES):
            nudged = self.nudged(tensors, NUDGE * eps, seed)
            for mask, before, after in zip(found, exact, nudged, strict=True):
                if mask is not None:
                    mask |= outputs.jumped(before, after, self.near)
        return found

    def nudged(self, tensors: list[torch.Tensor], relative: float, seed: int) -> list[torch.Tensor]:
        """The exact answer to inputs of which each element is changed by this much up or down, by chance."""
        generator = torch.Generator().manual_seed(seed)
        moved = []
        for tensor in tensors:
            if tensor.is_floating_point():
                signs = torch.randint(0, 2, tensor.shape, generator=generator, dtype=torch.int8) * 2 - 1
                tensor = (tensor.double() if self.double else tensor) * (1 + relative * signs)  # noqa: PLW2901
            moved.append(tensor)
        inputs = values.decode(self.tree, moved)
        result = self._forward_double(inputs) if self.double else self._forward(self.seed, inputs)[0]
        self._restore()
        return _tensors_of(result)

    def do_prove(self, message: Plain) -> Plain:
        """How much the problem's own checks can tell; takes about `seconds` at most."""
        return {"strength": strength.examine(self, float(message["seconds"]))}

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
        """The memory file as it is now."""
        return self.memory[which]


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


def _distance(first: Any, second: Any) -> float:
    """The largest difference of two outputs, relative to the largest magnitude of each tensor; infinite in kind."""
    found = 0.0
    for one, two in zip(_tensors_of(first), _tensors_of(second), strict=False):
        if one.shape != two.shape:
            return math.inf
        if not one.is_floating_point():
            if not torch.equal(one, two):
                return math.inf
        elif one.numel():
            scale = float(_plain(one).abs().max())
            apart = float((_plain(one) - _plain(two)).abs().max())
            found = max(found, apart / scale if scale else math.inf if apart else 0.0)
    return found
