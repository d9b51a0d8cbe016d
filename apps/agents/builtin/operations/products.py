"""Matrix products and convolutions: the library's, called before the kernel that computes what surrounds them."""

from __future__ import annotations

import math
from dataclasses import replace

from apps.agents.builtin.form import COMPUTED, Buffer, Def, Expr, Fold, Load, axes_of
from apps.agents.builtin.index import Axis, Index, joined, strides
from apps.agents.builtin.names import safe_name
from apps.agents.builtin.reading import Call, LibraryCall, Operand, Prepared, cast, element, lowers, number, op
from apps.agents.words import CannotWrite
from apps.kernels.facts import TensorFact


def _result(
    call: Call, text: str, reads: tuple[str, ...], flops: float, means: Def | None = None, shape: tuple[int, ...] = ()
) -> Def:
    """The call's result as memory that the kernel reads; a call that was made before is not made again."""
    shape = shape or call.out.shape
    before = next((one for one in call.calls if one.text == text and one.result.shape == shape), None)
    if before is not None:
        return _in_memory(before.result)
    fact = replace(call.out, name=safe_name(call.out.name), kind="product", shape=shape, strides=strides(shape))
    call.calls.append(LibraryCall(fact, text, reads, call.node.op, flops, means))
    return _in_memory(fact)


def _in_memory(fact: TensorFact) -> Def:
    axes = axes_of(fact.shape)
    buffer = Buffer(fact.name, fact.dtype, math.prod(fact.shape))
    return Def(axes, Load(buffer, joined(tuple(map(Index.of, axes)), fact.shape)), fact.dtype)


def _spelled(call: Call, operand: Operand) -> tuple[str, tuple[str, ...]]:
    """An operand in Python and the buffer that it reads: an input, one with its dimensions in another order, or what is
    computed into memory of its own first."""
    if operand is None:
        return "None", ()
    if not isinstance(operand, Def):
        raise CannotWrite(f"{call.node.op} is given a {type(operand).__name__} where a tensor is expected.")
    text = _as_it_is(call, operand)
    if text is not None:
        return text, (text.split(".")[0],)
    found = next((one for one in call.operands if one.value == operand), None)
    if found is None:
        name = f"operand{len(call.operands)}"
        fact = TensorFact(name, "operand", operand.dtype, operand.shape, strides(operand.shape))
        found = Prepared(fact, operand)
        call.operands.append(found)
    return found.fact.name, (found.fact.name,)


def _as_it_is(call: Call, operand: Def) -> str | None:
    """The operand as a tensor that is in memory, perhaps with its dimensions in another order; None where it is none."""
    load = operand.body
    if not isinstance(load, Load) or load.guards:
        return None
    fact = next((one for one in call.known if one.name == load.buffer.name), None)
    if fact is None or load.offset.constant or load.dtype != fact.dtype:
        return None
    steps = tuple(load.offset.coefficient(axis) for axis in operand.axes)
    if _laid_out(operand.shape, steps, tuple(range(len(steps))), fact):
        return fact.name
    if len(steps) == len(fact.shape):
        order = _order(operand.shape, steps, fact)
        if order is not None:
            return f"{fact.name}.permute({', '.join(map(str, order))})"
    return None


def _laid_out(shape: tuple[int, ...], steps: tuple[int | None, ...], order: tuple[int, ...], fact: TensorFact) -> bool:
    """Whether dimension i of the operand is the fact's dimension order[i]. How far one of size 1 steps says nothing."""
    if len(order) != len(fact.shape):
        return False
    return all(
        size == fact.shape[of] and (size == 1 or step == fact.strides[of])
        for size, step, of in zip(shape, steps, order, strict=True)
    )


def _order(shape: tuple[int, ...], steps: tuple[int | None, ...], fact: TensorFact) -> tuple[int, ...] | None:
    free = list(range(len(shape)))
    order = []
    for size, step in zip(shape, steps, strict=True):
        found = next((of for of in free if fact.shape[of] == size and (size == 1 or fact.strides[of] == step)), None)
        if found is None:
            return None
        free.remove(found)
        order.append(found)
    return tuple(order)


# The axis that a product sums over, apart from those of any value.
_SHARED = 300


def _product(call: Call, a: Def, b: Def) -> Def:
    """A product of matrices, or of many at once, with what it means."""
    batch, (rows, shared), columns = a.shape[:-2], a.shape[-2:], b.shape[-1]
    shape = (*batch, rows, columns)
    axes, summed = axes_of(shape), Axis(_SHARED, shared)
    here = tuple(map(Index.of, axes))
    dtype = COMPUTED[call.out.dtype]
    left = cast(a.at((*here[:-1], Index.of(summed))), dtype)
    right = cast(b.at((*here[:-2], Index.of(summed), here[-1])), dtype)
    means = Def(axes, Fold("sum", (summed,), (op("mul", left, right),)), call.out.dtype)
    (first, reads), (second, more) = _spelled(call, a), _spelled(call, b)
    name = "bmm" if batch else "mm"
    flops = 2.0 * math.prod(shape) * shared
    return _result(call, f"torch.{name}({first}, {second})", (*reads, *more), flops, means, shape)


@lowers("mm", "bmm")
def product(call: Call) -> Def:
    """A product of matrices, or of many at once."""
    return _product(call, call.tensor(0), call.tensor(1))


@lowers("addmm")
def product_and_bias(call: Call) -> Def:
    """beta bias + alpha a b. The library would write the bias to memory first; the kernel adds it in passing."""
    bias, made = call.tensor(0), _product(call, call.tensor(1), call.tensor(2))
    axes, dtype = axes_of(call.out.shape), COMPUTED[call.out.dtype]

    def scaled(x: Expr, name: str) -> Expr:
        factor = call.kwargs.get(name)
        return x if factor in (None, 1) else op("mul", x, number(factor, x))

    body = op("add", scaled(element(made, axes, dtype), "alpha"), scaled(element(bias, axes, dtype), "beta"))
    return Def(axes, body, call.out.dtype)


@lowers("convolution")
def convolution(call: Call) -> Def:
    """A convolution of any number of dimensions, also a transposed one."""
    operands = [_spelled(call, call.arg(i)) for i in range(3)]
    rest = [list(one) if isinstance(one, tuple) else one for one in call.args[3:]]
    text = ", ".join([*(text for text, _ in operands), *map(repr, rest)])
    reads = tuple(name for _, names in operands for name in names)
    x, weight, transposed = call.tensor(0), call.tensor(1), bool(call.arg(6))
    # Each weight meets each place of the result once, or of the input where that is what is spread out.
    places = math.prod((x if transposed else call.out).shape[2:]) * x.shape[0]
    return _result(call, f"torch.convolution({text})", reads, 2.0 * places * math.prod(weight.shape))
