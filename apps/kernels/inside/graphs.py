"""The exported program as plain data: `facts.Graph` says what it looks like."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
from torch.fx import Node as FxNode

from apps.kernels.facts import Graph, Node, TensorFact
from apps.kernels.plain import Plain

LARGEST_CONSTANT = 4096  # elements
MOST_NODES = 4000
# What torch's own default leaves whole, written as basic operations too: a reader of graphs then needs to know few.
DECOMPOSED = (
    "_softmax", "_log_softmax", "native_layer_norm", "native_group_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_functional", "_native_batch_norm_legit_no_training", "native_batch_norm",
    "_batch_norm_with_update_functional", "_fused_rms_norm", "gelu", "hardtanh", "elu", "leaky_relu",
    "linalg_vector_norm", "_scaled_dot_product_flash_attention_for_cpu",
)  # fmt: skip
# A functional program has values, not storage: these give their operand's value.
SAME_VALUE = ("alias", "clone", "detach", "lift_fresh", "lift_fresh_copy", "contiguous")


class NoGraph(Exception):
    """The program can't be written down as a graph; the message says why."""


def export(model: torch.nn.Module, inputs: tuple[Any, ...]) -> torch.export.ExportedProgram:
    """The model's program for inputs of these shapes, as basic operations. Raises `NoGraph`."""
    try:
        with torch.no_grad():
            program = torch.export.export(model, inputs, strict=False)
            program = program.run_decompositions(_decompositions())
    except Exception as problem:
        words = str(problem).strip().splitlines()
        raise NoGraph(f"torch.export refused it: {words[0] if words else type(problem).__name__}"[:400]) from None
    program.graph.eliminate_dead_code()
    return program


def _decompositions() -> dict[Any, Any]:
    packets = [getattr(torch.ops.aten, name) for name in DECOMPOSED if hasattr(torch.ops.aten, name)]
    table: dict[Any, Any] = dict(torch.export.default_decompositions())
    table.update(torch._decomp.get_decompositions(packets))
    return table


def as_graph(program: torch.export.ExportedProgram) -> Graph:
    """The program as plain data. Raises `NoGraph` where it holds what plain data can't say."""
    return _Writer(program).graph()


class _Writer:
    def __init__(self, program: torch.export.ExportedProgram) -> None:
        self.program = program
        self.references: dict[FxNode, Plain] = {}
        self.constants: dict[str, tuple[float | int | bool, ...]] = {}
        self.parts: dict[FxNode, list[Plain]] = {}

    def graph(self) -> Graph:
        nodes = list(self.program.graph.nodes)
        if len(nodes) > MOST_NODES:
            raise NoGraph(f"it has {len(nodes)} operations; at most {MOST_NODES} are written down")
        placeholders = {node.name: node for node in nodes if node.op == "placeholder"}
        inputs = self._inputs(placeholders)
        written = [written for node in nodes if node.op == "call_function" for written in self._nodes(node)]
        outputs, mutates = self._outputs(nodes[-1])
        return Graph(
            inputs=inputs,
            nodes=tuple(written),
            outputs=outputs,
            nested=self.program.call_spec.out_spec is not None and not self.program.call_spec.out_spec.is_leaf(),
            constants=self.constants,
            mutates=mutates,
        )

    # -- inputs ----------------------------------------------------------------------------------------------------------

    def _inputs(self, placeholders: dict[str, FxNode]) -> tuple[TensorFact, ...]:
        rank = {"input": 0, "parameter": 1, "buffer": 2, "constant": 3}
        found = []
        for spec in self.program.graph_signature.input_specs:
            node = placeholders[spec.arg.name]
            self.references[node] = {"ref": node.name}
            found.append(self._input(node, spec))
        return tuple(sorted(found, key=lambda fact: rank[fact.kind]))

    def _input(self, node: FxNode, spec: Any) -> TensorFact:
        kinds = {"USER_INPUT": "input", "PARAMETER": "parameter", "BUFFER": "buffer", "CONSTANT_TENSOR": "constant"}
        kind = kinds.get(spec.kind.name)
        if kind is None:
            raise NoGraph(f"it takes a {spec.kind.name.lower().replace('_', ' ')}, which is not a tensor")
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            if value is not None and not isinstance(value, bool | int | float | str):
                raise NoGraph(f"its argument {node.name} is a {type(value).__name__}")
            return TensorFact(node.name, kind, "scalar", value=value)
        if kind == "constant":
            self._keep_constant(node.name, self.program.constants.get(spec.target))
        return tensor_fact(node.name, kind, value, target=None if kind == "input" else spec.target)

    def _keep_constant(self, name: str, tensor: Any) -> None:
        if isinstance(tensor, torch.Tensor) and tensor.numel() <= LARGEST_CONSTANT and not tensor.is_complex():
            self.constants[name] = tuple(tensor.detach().reshape(-1).tolist())

    # -- operations ------------------------------------------------------------------------------------------------------

    def _nodes(self, node: FxNode) -> list[Node]:
        """What one node of the program is written as: mostly one operation, nothing where only a name changes."""
        if node.target is operator.getitem:
            source, index = node.args
            assert isinstance(source, FxNode)
            parts = self.parts.get(source)
            self.references[node] = parts[index] if parts else {**self.references[source], "index": index}
            return []
        target: Any = node.target
        if not isinstance(target, torch._ops.OpOverload):
            raise NoGraph(f"it calls {getattr(target, '__name__', target)}, which is no operator (control flow?)")
        if "val" not in node.meta and not node.users:
            return []  # an assertion of the exporter's, such as that a conversion's operand has its dtype
        if self._same_value(node, target):
            assert isinstance(node.args[0], FxNode)
            self.references[node] = self.references[node.args[0]]
            return []
        if target is torch.ops.aten.split_with_sizes.default:
            return self._slices(node)
        self.references[node] = {"ref": node.name}
        if target is torch.ops.aten.as_strided.default and _is_reshape(node):
            args = (self._plain(node.args[0]), self._plain(node.args[1]))
            return [Node(node.name, "aten.view.default", args, {}, (_value_fact(node.name, node.meta["val"]),))]
        args, kwargs = self._arguments(node, target)
        values = node.meta["val"] if isinstance(node.meta["val"], list | tuple) else [node.meta["val"]]
        return [Node(node.name, str(target), args, kwargs, tuple(_value_fact(node.name, value) for value in values))]

    def _slices(self, node: FxNode) -> list[Node]:
        """A split as the slices that are its parts."""
        source, sizes, *rest = node.args
        axis, start = (rest[0] if rest else node.kwargs.get("dim", 0)), 0
        names, written = [f"{node.name}_part{i}" for i in range(len(sizes))], []
        for name, size, value in zip(names, sizes, node.meta["val"], strict=True):
            args = (self._plain(source), axis, start, start + size, 1)
            written.append(Node(name, "aten.slice.Tensor", args, {}, (_value_fact(name, value),)))
            start += size
        self.parts[node] = [{"ref": name} for name in names]
        return written

    def _same_value(self, node: FxNode, target: Any) -> bool:
        if target.namespace != "aten":
            return False
        if target._opname in SAME_VALUE:
            return True
        if target._opname == "_to_copy":
            assert isinstance(node.args[0], FxNode)
            return bool(node.args[0].meta["val"].dtype == node.meta["val"].dtype)
        if target._opname in ("expand", "view", "_unsafe_view", "reshape", "permute"):
            assert isinstance(node.args[0], FxNode)
            same = node.args[0].meta["val"].shape == node.meta["val"].shape
            return bool(same and (target._opname != "permute" or list(node.args[1]) == sorted(node.args[1])))
        return False

    def _arguments(self, node: FxNode, target: Any) -> tuple[tuple[Plain, ...], dict[str, Plain]]:
        """Every positional argument of the schema, defaults written out; of the others those that are given."""
        args: list[Plain] = []
        kwargs: dict[str, Plain] = {}
        for position, argument in enumerate(target._schema.arguments):
            if argument.kwarg_only:
                if node.kwargs.get(argument.name) is not None:
                    kwargs[argument.name] = self._plain(node.kwargs[argument.name])
            elif position < len(node.args):
                args.append(self._plain(node.args[position]))
            else:
                args.append(self._plain(node.kwargs.get(argument.name, argument.default_value)))
        return tuple(args), kwargs

    def _plain(self, value: Any) -> Plain:
        if isinstance(value, FxNode):
            return self.references[value]
        if isinstance(value, list | tuple):
            return [self._plain(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device | torch.layout | torch.memory_format):
            return {type(value).__name__: str(value).removeprefix("torch.")}
        raise NoGraph(f"an operator takes a {type(value).__name__}")

    # -- outputs ---------------------------------------------------------------------------------------------------------

    def _outputs(self, node: FxNode) -> tuple[tuple[Plain, ...], tuple[str, ...]]:
        outputs, mutates = [], []
        returned: Any = node.args[0]
        for spec, value in zip(self.program.graph_signature.output_specs, returned, strict=True):
            if spec.kind.name == "USER_OUTPUT":
                outputs.append(self._plain(value))
            else:
                mutates.append(str(spec.target))
        return tuple(outputs), tuple(mutates)


def _is_reshape(node: FxNode) -> bool:
    """Whether an as_strided only gives a contiguous value another shape (torch writes some views so)."""
    assert isinstance(node.args[0], FxNode)
    source, result = node.args[0].meta["val"], node.meta["val"]
    same = source.numel() == result.numel() and result.storage_offset() == source.storage_offset()
    return bool(same and source.is_contiguous() and result.is_contiguous())


def _value_fact(name: str, value: Any) -> TensorFact:
    if isinstance(value, torch.Tensor):
        return tensor_fact(name, "output", value)
    return TensorFact(name, "output", "scalar")


def tensor_fact(name: str, kind: str, tensor: torch.Tensor, target: str | None = None) -> TensorFact:
    """A tensor's shape, strides, bytes and dtype as plain data."""
    return TensorFact(
        name=name,
        kind=kind,
        dtype=str(tensor.dtype).removeprefix("torch."),
        shape=tuple(int(size) for size in tensor.shape),
        strides=tuple(int(step) for step in tensor.stride()),
        bytes=int(tensor.numel()) * tensor.element_size(),
        target=target,
        requires_grad=bool(tensor.requires_grad),
    )
