"""Matrix products and convolutions: the library's, called before the kernel that computes what surrounds them."""

from __future__ import annotations

from dataclasses import replace

from apps.agents.builtin.form import Buffer, Def, Load, axes_of
from apps.agents.builtin.index import Index, joined, strides
from apps.agents.builtin.names import safe_name
from apps.agents.builtin.reading import Call, LibraryCall, Operand, lowers
from apps.agents.ports import CannotWrite
from apps.kernels.facts import TensorFact


def _result(call: Call, text: str, *operands: Operand) -> Def:
    """The call's result as memory that the kernel reads."""
    names = tuple(one.body.buffer.name for one in operands if isinstance(one, Def) and isinstance(one.body, Load))
    fact = replace(call.out, name=safe_name(call.out.name), kind="product", strides=strides(call.out.shape))
    call.calls.append(LibraryCall(fact, text, names, call.node.op))
    axes = axes_of(fact.shape)
    elements = 1
    for size in fact.shape:
        elements *= size
    return Def(
        axes, Load(Buffer(fact.name, fact.dtype, elements), joined(tuple(map(Index.of, axes)), fact.shape)), fact.dtype
    )


def _spelled(call: Call, operand: Operand) -> str:
    """An operand in Python: an input, or one with its dimensions in another order."""
    if operand is None:
        return "None"
    if not isinstance(operand, Def) or not isinstance(operand.body, Load) or operand.body.guards:
        raise CannotWrite(f"{call.node.op} is given computed values, which the built-in coder does not write yet.")
    load = operand.body
    fact = next((one for one in call.known if one.name == load.buffer.name), None)
    if fact is None or load.offset.constant or load.dtype != fact.dtype:
        raise CannotWrite(f"{call.node.op} is given part of a tensor, which the built-in coder does not write yet.")
    steps = tuple(load.offset.coefficient(axis) for axis in operand.axes)
    if _laid_out(operand.shape, steps, tuple(range(len(steps))), fact):
        return fact.name
    if len(steps) == len(fact.shape):
        order = _order(operand.shape, steps, fact)
        if order is not None:
            return f"{fact.name}.permute({', '.join(map(str, order))})"
    raise CannotWrite(f"{call.node.op} is given a view that the built-in coder does not write yet.")


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


@lowers("mm", "bmm")
def product(call: Call) -> Def:
    """A product of matrices, or of many at once."""
    a, b = call.tensor(0), call.tensor(1)
    name = "bmm" if call.node.op.startswith("aten.bmm") else "mm"
    return _result(call, f"torch.{name}({_spelled(call, a)}, {_spelled(call, b)})", a, b)


@lowers("addmm")
def product_and_bias(call: Call) -> Def:
    """beta bias + alpha a b."""
    bias, a, b = call.tensor(0), call.tensor(1), call.tensor(2)
    factors = "".join(
        f", {name}={call.kwargs[name]!r}" for name in ("beta", "alpha") if call.kwargs.get(name) is not None
    )
    text = f"torch.addmm({_spelled(call, bias)}, {_spelled(call, a)}, {_spelled(call, b)}{factors})"
    return _result(call, text, bias, a, b)


@lowers("convolution")
def convolution(call: Call) -> Def:
    """A convolution of any number of dimensions, also a transposed one."""
    tensors = [call.arg(i) for i in range(3)]
    rest = [list(one) if isinstance(one, tuple) else one for one in call.args[3:]]
    text = ", ".join([*(_spelled(call, one) for one in tensors), *map(repr, rest)])
    return _result(call, f"torch.convolution({text})", *tensors)
