"""What is known of a problem without trusting it: its facts and its graph, both plain data.

The graph is the program that `torch.export` gives, made inside the jail; readers (the built-in coder, pages) need no
torch. It is functional and free of dead code, and written with few operators:

- Composites come as basic operations: soft-max and log-sum-exp as amax, sub, exp, sum, div, log; layer, group and RMS
  norm as var_mean or mean, rsqrt, mul, add; batch norm likewise; GELU by erf or tanh, SiLU, Mish, hard-swish, ELU,
  soft-plus and their kin by exp, tanh, clamp, where; losses as operations and a mean or sum; vector norms as sums.
- Kept as they are: mm, addmm, bmm, convolution; sum, mean, prod, amax, amin, max.dim, min.dim, argmax, argmin, any,
  var.correction, var_mean.correction; cumsum, cumprod; pooling; gather, index, embedding; views (view, permute,
  expand, unsqueeze, squeeze, slice, select, cat, constant_pad_nd).
- What only renames a value is gone: clone, alias, detach, casts to the same dtype, views to the same shape. Strides in
  the graph are therefore those of the exported program, not a promise; what a kernel must return is in
  `ProblemFacts.outputs`.
- An operand that is a tensor by the schema may be a number (`aten.sub.Tensor(1, x)`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.kernels.plain import Plain

SCHEMA = 1


@dataclass(frozen=True)
class TensorFact:
    """A tensor or scalar by name: `shape` and `strides` in elements; `value` only for Python scalars.

    `kind` is one of input, parameter, buffer, constant, output. `target` is the dotted name in the state_dict of a
    parameter or buffer. `dtype` is torch's name without prefix (float32, int64, bool ...), or `scalar`.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    bytes: int = 0
    target: str | None = None
    value: float | int | bool | str | None = None
    requires_grad: bool = False


@dataclass(frozen=True)
class Node:
    """One operation. `op` is the overload's full name, such as `aten.add.Tensor`.

    `args` holds every positional argument of the operator's schema, defaults written out; `kwargs` those keyword-only
    ones that are given. In both a tensor is {"ref": NAME} (with "index": I for one result of several), a dtype
    {"dtype": NAME}, a device {"device": NAME}, a non-finite number {"float": "inf"}; lists nest; anything else is a
    JSON literal. `outputs` are of kind `output` and carry the node's name.
    """

    name: str
    op: str
    args: tuple[Plain, ...]
    kwargs: dict[str, Plain]
    outputs: tuple[TensorFact, ...]


@dataclass(frozen=True)
class Graph:
    """A program in order of execution. `outputs` are references as in `Node.args`; `nested` if Model returns a tuple.

    `inputs` are in the order of forward's arguments, then parameters, buffers and lifted constants. A constant small
    enough to be written down (at most 4096 elements) carries its flat values in `constants`. `mutates` names the
    buffers that a call updates; their new values are not among `outputs`.
    """

    inputs: tuple[TensorFact, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Plain, ...]
    nested: bool = False
    constants: dict[str, tuple[float | int | bool, ...]] = field(default_factory=dict)
    mutates: tuple[str, ...] = ()
    schema: int = SCHEMA


@dataclass(frozen=True)
class Constant:
    """A module-level size constant that `--set` may override."""

    name: str
    value: int | float | bool | str
    line: int


@dataclass(frozen=True)
class Quirk:
    """Something about a problem that a person should know: weak for some mutant, precision not provable, ..."""

    name: str
    detail: str


@dataclass(frozen=True)
class ProblemFacts:
    """Facts of one problem at one choice of sizes.

    `flops` counts operations as written; `compulsory_bytes` is what any kernel must move (inputs it depends on once,
    outputs once); `memory_bytes` is what judging it needs. `refusal` says why it can't be judged and what would make
    it fit, and then what follows may be missing. `init_inputs` are plain where they can be, else their repr.
    """

    constants: tuple[Constant, ...] = ()
    inputs: tuple[TensorFact, ...] = ()
    init_inputs: tuple[Plain, ...] = ()
    parameters: tuple[TensorFact, ...] = ()
    outputs: tuple[TensorFact, ...] = ()
    flops: int | None = None
    compulsory_bytes: int | None = None
    memory_bytes: int | None = None
    operators: dict[str, int] = field(default_factory=dict)
    graph: Graph | None = None
    graph_refusal: str | None = None
    quirks: tuple[Quirk, ...] = ()
    refusal: str | None = None
    docstring: str = ""
    schema: int = SCHEMA
