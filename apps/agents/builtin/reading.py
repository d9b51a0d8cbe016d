"""From an exported graph to definitions: each operation becomes what each element of its result is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from apps.agents.builtin.form import (
    COMPUTED,
    FLOATS,
    Buffer,
    Const,
    Def,
    Expr,
    Load,
    Op,
    axes_of,
)
from apps.agents.builtin.index import Index, joined
from apps.agents.builtin.names import safe_name
from apps.agents.words import CannotWrite
from apps.kernels.facts import Graph, Node, TensorFact
from apps.kernels.plain import Plain

Operand = Any  # a Def, or a plain number, string, list or None of the graph
Lowering = Callable[["Call"], "Def | tuple[Def | None, ...]"]


@dataclass(frozen=True)
class Meaning:
    """A problem as definitions. `inputs` are the graph's, in its order, under names that are safe in a candidate; each
    tensor among them is the buffer of its name."""

    inputs: tuple[TensorFact, ...]
    outputs: tuple[Def, ...]
    nested: bool
    constants: dict[str, tuple[float | int | bool, ...]]
    calls: tuple[LibraryCall, ...] = ()
    operands: tuple[Prepared, ...] = ()

    @property
    def rounds(self) -> tuple[Round, ...]:
        """What comes before the outputs, in order."""
        found: list[Round] = []
        made: set[str] = set()
        for call in self.calls:
            new = tuple(o for o in self.operands if o.fact.name in call.reads and o.fact.name not in made)
            made |= set(call.reads)
            if new or not found:
                found.append(Round(new, (call,)))
            else:
                found[-1] = replace(found[-1], calls=(*found[-1].calls, call))
        return tuple(found)


@dataclass(frozen=True)
class Round:
    """Operands that the kernel computes, then calls of the library."""

    operands: tuple[Prepared, ...]
    calls: tuple[LibraryCall, ...]


@dataclass(frozen=True)
class LibraryCall:
    """What the library computes before the kernel runs: `text` in Python over the buffers named `reads`.

    `flops` counts a multiply-add as two. `means` is the same as a fold, where it is one.
    """

    result: TensorFact
    text: str
    reads: tuple[str, ...]
    op: str
    flops: float = 0.0
    means: Def | None = None


@dataclass(frozen=True)
class Prepared:
    """An operand of a library call that is computed first, into contiguous memory of its own."""

    fact: TensorFact
    value: Def


@dataclass(frozen=True)
class Call:
    """One operation with its operands resolved."""

    node: Node
    args: tuple[Operand, ...]
    kwargs: dict[str, Operand]
    inputs: tuple[TensorFact, ...]
    calls: list[LibraryCall]
    operands: list[Prepared]

    @property
    def known(self) -> tuple[TensorFact, ...]:
        """All tensors that are in memory before the kernel runs."""
        return (*self.inputs, *(call.result for call in self.calls))

    @property
    def out(self) -> TensorFact:
        """Its first result's shape and dtype."""
        return self.node.outputs[0]

    def arg(self, position: int, default: Operand = None) -> Operand:
        """An operand by position, or the default."""
        return self.args[position] if position < len(self.args) else default

    def tensor(self, position: int) -> Def:
        """An operand that must be a tensor."""
        found = self.arg(position)
        if not isinstance(found, Def):
            raise CannotWrite(f"{self.node.op} is given a {type(found).__name__} where a tensor is expected.")
        return found


@dataclass(frozen=True)
class DType:
    """A dtype among the arguments."""

    name: str


LOWERINGS: dict[str, Lowering] = {}


def lowers(*names: str) -> Callable[[Lowering], Lowering]:
    """Registers how operations `aten.NAME` (any overload) are written."""

    def register(lowering: Lowering) -> Lowering:
        for name in names:
            LOWERINGS[name] = lowering
        return lowering

    return register


def read(graph: Graph) -> Meaning:
    """The meaning of a graph. Raises `CannotWrite` naming every operation that has no form here."""
    from apps.agents.builtin import operations  # the table is filled by importing it
    from apps.agents.builtin.algebra import reduced

    _check(graph, operations.LOWERINGS)
    inputs = tuple(replace(fact, name=safe_name(fact.name)) for fact in graph.inputs)
    calls: list[LibraryCall] = []
    operands: list[Prepared] = []
    values: dict[str, Operand] = {fact.name: _input(fact, graph) for fact in graph.inputs}
    results: dict[str, tuple[Operand, ...]] = {name: (value,) for name, value in values.items()}
    for node in graph.nodes:
        args = tuple(_resolve(arg, results) for arg in node.args)
        kwargs = {name: _resolve(arg, results) for name, arg in node.kwargs.items()}
        result = LOWERINGS[_name(node.op)](Call(node, args, kwargs, inputs, calls, operands))
        results[node.name] = result if isinstance(result, tuple) else (result,)
    outputs = []
    for reference in graph.outputs:
        value = _resolve(reference, results)
        if not isinstance(value, Def):
            raise CannotWrite("One of its outputs is not a tensor.")
        outputs.append(value)
    constants = {safe_name(name): values for name, values in graph.constants.items()}
    meaning = reduced(Meaning(inputs, tuple(outputs), graph.nested, constants, tuple(calls), tuple(operands)))
    names = {call.result.name for call in meaning.calls}
    if any(isinstance(value.body, Load) and value.body.buffer.name in names for value in meaning.outputs):
        raise CannotWrite("An output is a product as the library gives it, with nothing around it to be fused.")
    return meaning


def _check(graph: Graph, table: dict[str, Lowering]) -> None:
    unknown = sorted({node.op for node in graph.nodes if _name(node.op) not in table})
    if unknown:
        raise CannotWrite(f"The built-in coder has no form for {', '.join(unknown)}.")
    if graph.mutates:
        raise CannotWrite(f"It changes {', '.join(graph.mutates)} in place, which the built-in coder does not write.")
    for fact in graph.inputs:
        if fact.kind == "constant" and fact.dtype != "scalar" and fact.name not in graph.constants:
            raise CannotWrite(f"The constant {fact.name} is too large to be written into a kernel.")
        if fact.dtype != "scalar" and fact.dtype not in COMPUTED:
            raise CannotWrite(f"{fact.name} is of dtype {fact.dtype}, which the built-in coder does not compute in.")


def _name(op: str) -> str:
    return ".".join(op.split(".")[:2]).removeprefix("aten.")


def _input(fact: TensorFact, graph: Graph) -> Operand:
    if fact.dtype == "scalar":
        return fact.value
    axes = axes_of(fact.shape)
    steps = fact.strides or ()
    offset = Index()
    for axis, step in zip(axes, steps, strict=True):
        offset = offset + Index.of(axis) * step
    elements = 1 + sum((size - 1) * step for size, step in zip(fact.shape, steps, strict=True)) if fact.shape else 1
    if fact.shape and 0 in fact.shape:
        elements = 0
    if fact.kind == "constant":
        values = graph.constants[fact.name]
        if len(set(map(repr, values))) == 1:
            return Def(axes, Const(values[0], COMPUTED[fact.dtype]), fact.dtype)
        offset = joined(tuple(Index.of(axis) for axis in axes), fact.shape)
        elements = len(values)
    return Def(axes, Load(Buffer(safe_name(fact.name), fact.dtype, elements), offset), fact.dtype)


def _resolve(arg: Plain, results: dict[str, tuple[Operand, ...]]) -> Operand:
    if isinstance(arg, dict):
        if "ref" in arg:
            value = results[arg["ref"]][arg.get("index") or 0]
            if value is None:
                raise CannotWrite(f"It uses a result of {arg['ref']} that the built-in coder does not compute.")
            return value
        if "dtype" in arg:
            return DType(arg["dtype"])
        if "float" in arg:
            return float(arg["float"])
        return None
    if isinstance(arg, list | tuple):
        return tuple(_resolve(item, results) for item in arg)
    return arg


# --- what lowerings are written with ----------------------------------------------------------------------------


def cast(node: Expr, dtype: str) -> Expr:
    """The node in another computed type."""
    if node.dtype == dtype:
        return node
    if isinstance(node, Const):
        return Const(_constant(node.value, dtype), dtype)
    return Op("cast", (node,), dtype)


def _constant(value: float | int | bool, dtype: str) -> float | int | bool:
    if dtype == "bool":
        return bool(value)
    if dtype in FLOATS:
        return float(value)
    return int(value)


def element(operand: Operand, axes: tuple[Any, ...], dtype: str | None = None) -> Expr:
    """An operand's element at the axes of the result, broadcast from the right; a number is a constant."""
    if isinstance(operand, Def):
        mine = axes[len(axes) - len(operand.axes) :]
        indices = [
            Index.of(axis) if own.extent == axis.extent else Index()
            for own, axis in zip(operand.axes, mine, strict=True)
        ]
        found = operand.at(indices)
        return cast(found, dtype) if dtype else found
    if not isinstance(operand, bool | int | float):
        raise CannotWrite(f"A {type(operand).__name__} stands where a number or tensor is expected.")
    natural = "bool" if isinstance(operand, bool) else "int64" if isinstance(operand, int) else "float32"
    return Const(_constant(operand, dtype or natural), dtype or natural)


_RANKS = {"bool": 0, "int32": 1, "int64": 2, "float32": 3, "float64": 4}


def promoted(*operands: Operand) -> str:
    """The computed type in which operands are compared: the tensors' widest; a number counts by its category only."""
    found = "bool"
    for operand in operands:
        if isinstance(operand, Def) and _RANKS[COMPUTED[operand.dtype]] > _RANKS[found]:
            found = COMPUTED[operand.dtype]
    for operand in operands:
        if isinstance(operand, Def):
            continue
        if isinstance(operand, float) and found not in FLOATS:
            found = "float32"
        elif isinstance(operand, int) and not isinstance(operand, bool) and found == "bool":
            found = "int64"
    return found


def pointwise(out: TensorFact, body: Callable[..., Expr], *operands: Operand, dtype: str | None = None) -> Def:
    """A result whose element is `body` of the operands' elements, cast to `dtype` (the result's computed type)."""
    axes = axes_of(out.shape)
    computed = dtype or COMPUTED[out.dtype]
    made = body(*(element(operand, axes, computed) for operand in operands))
    return Def(axes, cast(made, COMPUTED[out.dtype]), out.dtype)


def op(name: str, *args: Expr, to: str | None = None) -> Expr:
    """An operation whose type is its last operand's unless said otherwise."""
    return Op(name, args, to or args[-1].dtype)


def number(value: float, like: Expr) -> Const:
    """A constant of the type of another node."""
    return Const(_constant(value, like.dtype), like.dtype)


def dimensions(given: Operand, rank: int) -> tuple[int, ...]:
    """Dimensions as sorted non-negative numbers; None and an empty list mean all of them."""
    if given is None or given == ():
        return tuple(range(rank))
    many = given if isinstance(given, tuple) else (given,)
    return tuple(sorted({int(one) % max(1, rank) for one in many})) if rank else ()
