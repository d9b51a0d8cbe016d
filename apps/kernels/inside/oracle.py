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
from collections.abc import Collection, Iterable
from types import ModuleType
from typing import Any

import torch

from apps.kernels.inside import answering, draws, examining, layouts, outputs, process_state, reductions, values
from apps.kernels.inside.draw_names import AS_GIVEN
from apps.kernels.inside.mapped import Mapped
from apps.kernels.inside.screening import NEAR
from apps.kernels.inside.source import explain, load_module
from apps.kernels.inside.structure import Zeros
from apps.kernels.jail.channel import Channel, ChannelBroken
from apps.kernels.plain import Plain

BANK, EXPECT, STATE = 0, 1, 2
SMALL = 1 << 21  # elements
# Operators whose result may have another shape for other values; indexing by a mask is one.
SIZED_BY_VALUES = (
    "nonzero",
    "masked_select",
    "index",
    "unique",
    "_unique2",
    "unique_consecutive",
    "unique_dim",
    "bincount",
)
REQUIRED = ("Model", "get_inputs", "get_init_inputs")
RANDOM, SURELY_RANDOM = 1e-5, 1e-3  # relative to scale: two calls on the same inputs differ by this much


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
        large = _too_large(problem)
        channel.send({"refused": large or f"it raised:\n{explain(problem)}", "too_large": large is not None})
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
        self.reductions: list[int] = []
        self.near = NEAR
        self.zeros: Zeros

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
            inputs = self.draw_inputs(self.seed + 1)
            tensors: list[torch.Tensor] = []
            self.tree = values.encode(list(inputs), tensors)
            self.specs = [values.describe(t) for t in tensors]
            self.zeros = Zeros(tensors, self._under_another_seed)
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

    def draw_inputs(self, seed: int) -> Any:
        """What get_inputs gives under a seed, stored as asked for. Raises `Refused`."""
        torch.manual_seed(seed)
        inputs = self.module.get_inputs()
        if not isinstance(inputs, list | tuple):
            raise Refused("get_inputs must return a list of forward's arguments")
        layout = self.payload.get("layout")
        if not layout:
            return inputs
        tensors: list[torch.Tensor] = []
        tree = values.encode(inputs, tensors)
        return values.decode(tree, [layouts.laid_out(tensor, layout) for tensor in tensors])

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
        with reductions.Counting() as counted:
            first = self.forward(self.seed, inputs)
        for index, (old, new) in enumerate(zip(before, tensors, strict=True)):
            if not torch.equal(old.nan_to_num() if old.is_floating_point() else old, _plain(new)):
                raise Refused(f"forward changes its input {index} in place; return a new tensor instead")
        updated = [n for n, b in self.model.named_buffers() if not torch.equal(b, self.buffers_before[n])]
        self.restore()
        if sum(t.numel() for t in tensors) < SMALL:
            torch.set_num_threads(1)  # a small answer isn't worth threads that go on spinning beside other processes
        if self._is_random(first, inputs):
            raise Refused("its output is random: the same inputs gave different outputs")
        returned: list[torch.Tensor] = []
        try:
            tree = values.encode(first, returned, by_key=True)
            specs = [values.describe(t) for t in returned]
        except values.NotPlain as problem:
            raise Refused(f"forward must return tensors, not {problem}") from None
        if not returned or not any(t.numel() for t in returned):
            raise Refused("forward returns no tensor with elements")
        self._refuse_other_shapes(counted.operators, specs)
        self.selects = answering.what_is_selected(self, inputs, returned)
        self.reductions = [counted.of(tensor) for tensor in returned]
        self.double = self._double_works(inputs)
        kept = [*tensors, *self.model.state_dict().values()]
        pointers = {t.untyped_storage().data_ptr() for t in kept}
        return {
            "outputs": specs,
            "output_tree": tree,
            "selects": self.selects,
            "reductions": self.reductions,
            "operators": counted.operators,
            "allocated": counted.allocated,
            "views": [t.untyped_storage().data_ptr() in pointers for t in returned],
            "outputs_share": len({t.untyped_storage().data_ptr() for t in returned if t.numel()})
            < sum(t.numel() > 0 for t in returned),
            "updated": updated,
            "double": self.double,
        }

    def _refuse_other_shapes(self, operators: Iterable[str], specs: list[Plain]) -> None:
        """Raises `Refused` where other inputs give outputs of other shapes. Only looked for where an operator can make them."""
        if not any(name.partition(".")[2].partition(".")[0] in SIZED_BY_VALUES for name in operators):
            return
        found = values.tensors_of(self.forward(self.seed, self.draw_inputs(self.seed + 2)))
        self.restore()
        if [values.describe(tensor) for tensor in found] != specs:
            raise Refused(
                "the shapes of its outputs depend on its inputs' values; fill up to a size that does not, or return a mask"
            )

    def _is_random(self, first: Any, inputs: Any) -> bool:
        """Whether other random numbers give another output; where it is close, whether the same ones don't."""
        second = self.forward(self.seed + 7, inputs)
        self.restore()
        apart = _distance(first, second)
        if not RANDOM < apart <= SURELY_RANDOM:
            return apart > RANDOM
        again = self.forward(self.seed + 7, inputs)
        self.restore()
        return apart > 8 * _distance(second, again)

    def _double_works(self, inputs: Any) -> bool:
        try:
            self.forward_double(inputs)
        except Exception:
            return False
        finally:
            self.restore()
        return True

    # -- answering ---------------------------------------------------------------------------------------------------

    def do_draw(self, message: Plain) -> Plain:
        """Draw inputs under a seed, reshape their distribution, write them to the bank."""
        try:
            tensors = self.drawn(message["seed"], message["how"])
        except Refused as refusal:
            return {"refused": str(refusal)}
        for tensor, spec, offset in zip(tensors, self.specs, message["offsets"], strict=True):
            layouts.written_once(values.over(self._map(BANK), offset, spec)).copy_(layouts.written_once(tensor))
        return {"drawn": True}

    def drawn(self, seed: int, how: str) -> list[torch.Tensor]:
        """The tensors among the inputs under a seed, their distribution changed as named. Raises `Refused`."""
        tensors: list[torch.Tensor] = []
        tree = values.encode(list(self.draw_inputs(seed)), tensors)
        if [values.describe(t) for t in tensors] != self.specs or tree != self.tree:
            raise Refused("get_inputs gives other shapes or values each time; they must not depend on chance")
        generator = torch.Generator().manual_seed(seed ^ 0x5EED)
        drawn = [draws.reshape(tensor, how, generator, index) for index, tensor in enumerate(tensors)]
        return drawn if how == AS_GIVEN else self.zeros.kept(drawn)

    def _under_another_seed(self) -> list[torch.Tensor]:
        tensors: list[torch.Tensor] = []
        values.encode(list(self.draw_inputs(self.seed + 2)), tensors)
        return tensors

    def do_answer(self, message: Plain) -> Plain:
        """Both answers for the inputs that lie in the bank; says whether torch's own float32 is near float64 there."""
        started = time.perf_counter()
        bank = self._map(BANK)
        pairs = zip(self.specs, message["offsets"], strict=True)
        tensors = [values.over(bank, offset, spec).clone() for spec, offset in pairs]
        self._load_buffers(message.get("buffers"))
        found = answering.answer(self, tensors, jumps=bool(message.get("jumps")), buffers=message.get("buffers"))
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

    def do_prove(self, message: Plain) -> Plain:
        """How much the problem's own checks can tell; takes about `seconds` at most."""
        return {"strength": examining.examine(self, float(message["seconds"]))}

    def do_state(self, message: Plain) -> Plain:
        """Construct the model under a seed, alter its parameters if asked, write its state for the runners."""
        before = self.model.state_dict()
        self._construct(message["seed"])
        if message.get("alter") is not None:
            # of what a candidate can't be given, it can make itself what was drawn, from the seed; not what is set from outside
            now = self.model.state_dict()
            leave = {name for name in message["missing"] if not torch.equal(before[name], now[name])}
            self._alter(int(message["alter"]), leave)
        state = self._map(STATE)
        for name, tensor in self.model.state_dict().items():
            spec = values.contiguous_spec(values.dtype_name(tensor.dtype), list(tensor.shape))
            if tensor.numel():
                values.over(state, message["places"][name], spec).copy_(tensor)
        return {"written": True}

    def _alter(self, seed: int, leave: Collection[str]) -> None:
        """Other weights; those that change their sign only where the model takes them, as it takes its own."""
        made = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        inputs = self.draw_inputs(self.seed + 1)
        for flips in (True, False):
            with torch.no_grad():
                for name, tensor in self.model.state_dict().items():
                    tensor.copy_(made[name])
            draws.alter_state(self.model, torch.Generator().manual_seed(seed), leave, flips=flips)
            self._remember()
            if not flips or self._stays_finite(inputs):
                return

    def _stays_finite(self, inputs: Any) -> bool:
        try:
            found = values.tensors_of(self.forward(self.seed, inputs))
        except Exception:
            return False
        finally:
            self.restore()
        return all(bool(torch.isfinite(tensor).all()) for tensor in found if tensor.is_floating_point())

    # -- the model ---------------------------------------------------------------------------------------------------

    def forward(self, seed: int, inputs: Any) -> Any:
        """The model's own answer; random numbers are those of the seed."""
        torch.manual_seed(seed)
        with torch.no_grad():
            return self.model(*inputs)

    def forward_double(self, inputs: Any) -> Any:
        """The model's answer in float64, of the same inputs and buffers."""
        if self.in_double is None:
            self.in_double = copy.deepcopy(self.model).double()
            self.in_double.train(self.model.training)
        for name, buffer in self.in_double.named_buffers():
            buffer.copy_(self.buffers_before[name])
        usual = torch.get_default_dtype()
        torch.manual_seed(self.seed)
        torch.set_default_dtype(torch.float64)
        try:
            with torch.no_grad():
                result = self.in_double(*as_double(inputs))
        finally:
            torch.set_default_dtype(usual)
        return result

    def restore(self) -> None:
        """Give the model the buffers that it had before it was called."""
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
                self.buffers_before[name] = buffer.detach().clone()

    def write_buffers(self, places: Plain) -> None:
        """Write the buffers that a call updates to where the judge asked for them."""
        if not places:
            return
        state = self._map(STATE)
        for name, buffer in self.model.named_buffers():
            if name in places:
                spec = values.contiguous_spec(values.dtype_name(buffer.dtype), list(buffer.shape))
                values.over(state, places[name], spec).copy_(buffer)

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


def as_double(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.double() if value.is_floating_point() else value
    if isinstance(value, list | tuple):
        return type(value)([as_double(item) for item in value])
    if isinstance(value, dict):
        return {key: as_double(item) for key, item in value.items()}
    return value


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.nan_to_num() if tensor.is_floating_point() else tensor


def _distance(first: Any, second: Any) -> float:
    """The largest difference of two outputs, relative to the largest magnitude of each tensor; infinite in kind."""
    found = 0.0
    for one, two in zip(values.tensors_of(first), values.tensors_of(second), strict=False):
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
