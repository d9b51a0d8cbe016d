"""Is a call's work done by torch? Looks at what runs in a call only: set-up may compute with whatever it likes."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from apps.kernels.evaluation import Policy, Rejection
from apps.kernels.rules import names
from apps.kernels.rules.reading import Function, Reading

RULE = "torch computes"


@dataclass(frozen=True)
class Use:
    """One call of torch's compute in a call of the candidate: its name, the line, and whether it is the library's part."""

    name: str
    line: int
    library: bool


def torch_uses(reading: Reading) -> list[Use]:
    """Everything torch would compute in a call, as far as the text shows it, each once a line."""
    found: dict[tuple[str, int], Use] = {}
    for function in reading.called:
        for use in _Looking(reading, function).uses():
            found.setdefault((use.name, use.line), use)
    return sorted(found.values(), key=lambda use: use.line)


def rejections(uses: list[Use], policy: Policy) -> list[Rejection]:
    """The uses that a policy doesn't allow."""
    found = []
    for use in uses:
        if use.library and policy is Policy.LIBRARY:
            continue
        advice = "compute it in a kernel of your own"
        if use.library:
            advice += ", or judge it under policy library"
        elif policy is Policy.LIBRARY:
            advice += "; policy library allows products and convolutions only"
        found.append(Rejection(RULE, f"line {use.line}", f"{use.name} runs in a call; {advice}"))
    return found


class _Looking:
    """One function that runs in a call."""

    def __init__(self, reading: Reading, function: Function) -> None:
        self.reading = reading
        self.function = function
        self.tensors = self._tensors()

    def uses(self) -> list[Use]:
        return [use for node in ast.walk(self.function) if (use := self._use(node))]

    def _use(self, node: ast.AST) -> Use | None:
        if isinstance(node, ast.Call):
            return self._call(node)
        operands: list[ast.expr] = []
        if isinstance(node, ast.BinOp):
            operands = [node.left, node.right]
        elif isinstance(node, ast.AugAssign):
            operands = [node.target]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Invert):
            operands = [node.operand]
        if isinstance(node, ast.BinOp | ast.AugAssign | ast.UnaryOp) and any(map(self._is_tensor, operands)):
            return self._operator(node, node.op)
        return None

    def _call(self, node: ast.Call) -> Use | None:
        dotted = self.reading.dotted(node.func)
        name = dotted.rpartition(".")[2]
        if dotted.startswith("torch."):
            return self._torch_function(node, dotted, name)
        if isinstance(node.func, ast.Attribute) and _is_self(node.func.value) and node.func.attr in self.reading.layers:
            return self._layer(node, node.func.attr)
        if isinstance(node.func, ast.Attribute) and self._is_tensor(node.func.value):
            return self._method(node, node.func.attr)
        return None

    def _torch_function(self, node: ast.Call, dotted: str, name: str) -> Use | None:
        plain = name.removesuffix("_")
        operator = dotted.startswith(("torch.ops.aten.", "torch.ops.mkldnn.", "torch.ops.quantized.", "torch._C._nn."))
        if operator or dotted.startswith("torch._refs."):
            name = next((part for part in dotted.split(".")[2:] if part in names.COMPUTE | names.LIBRARY), name)
            plain = name
        elif dotted.startswith(("torch.cuda.", "torch.backends.", "torch.utils.", "torch.autograd.", "torch.ops.")):
            return None
        if plain in names.LIBRARY:
            return Use(dotted, node.lineno, library=True)
        if plain in names.COMPUTE:
            return Use(dotted, node.lineno, library=False)
        return None

    def _layer(self, node: ast.Call, attribute: str) -> Use | None:
        kind = self.reading.layers[attribute]
        if kind in names.PLUMBING_LAYERS:
            return None
        return Use(f"self.{attribute}(...), a torch.nn.{kind},", node.lineno, library=kind in names.LIBRARY_LAYERS)

    def _method(self, node: ast.Call, name: str) -> Use | None:
        if name in names.FILLING or name == "unfold":
            return None
        plain = name.removesuffix("_")
        if plain in names.LIBRARY:
            return Use(f"Tensor.{name}", node.lineno, library=True)
        if plain in names.COMPUTE:
            return Use(f"Tensor.{name}", node.lineno, library=False)
        return None

    def _operator(self, node: ast.BinOp | ast.AugAssign | ast.UnaryOp, kind: ast.operator | ast.unaryop) -> Use:
        product = isinstance(kind, ast.MatMult)
        shown = ast.unparse(node)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        return Use(f"`{shown}` on tensors", node.lineno, library=product)

    # -- what is a tensor ----------------------------------------------------------------------------------------------

    def _tensors(self) -> set[str]:
        """Local names that hold tensors for certain: arguments used as such, allocations, and what is made from them."""
        known = {argument.arg for argument in self._arguments() if self._looks_like_tensor(argument)}
        self.tensors = known
        for node in ast.walk(self.function):
            if isinstance(node, ast.Assign) and self._is_tensor(node.value):
                known |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            elif (
                isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _names_tensor(node.annotation)
            ):
                known.add(node.target.id)
        return known - self._numbers()

    def _numbers(self) -> set[str]:
        """Local names that are bound to a size somewhere: what they hold elsewhere can't be told by the name."""
        found: set[str] = set()
        for node in ast.walk(self.function):
            if not isinstance(node, ast.Assign):
                continue
            for target in node.targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple):
                    values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value] * len(target.elts)
                    pairs = list(zip(target.elts, values, strict=False))
                found |= {name.id for name, value in pairs if isinstance(name, ast.Name) and _is_size(value)}
        return found

    def _arguments(self) -> list[ast.arg]:
        given = self.function.args
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        return [argument for argument in every if argument.arg not in ("self", "cls", "ctx")]

    def _looks_like_tensor(self, argument: ast.arg) -> bool:
        if argument.annotation is not None:
            return _names_tensor(argument.annotation)
        seen = False
        for node in ast.walk(self.function):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == argument.arg:
                seen = seen or node.attr in names.TENSOR_EVIDENCE
        return seen

    def _is_tensor(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.tensors
        if isinstance(node, ast.Attribute):
            if _is_self(node.value):
                return node.attr in self.reading.parameters
            if isinstance(node.value, ast.Attribute) and _is_self(node.value.value):
                return node.value.attr in self.reading.layers and node.attr in ("weight", "bias")
            return node.attr in ("T", "mT", "data") and self._is_tensor(node.value)
        if isinstance(node, ast.Subscript):
            return self._is_tensor(node.value)
        if isinstance(node, ast.BinOp):
            return self._is_tensor(node.left) or self._is_tensor(node.right)
        if isinstance(node, ast.Call):
            return self._gives_tensor(node)
        return False

    def _gives_tensor(self, node: ast.Call) -> bool:
        dotted = self.reading.dotted(node.func)
        if dotted.startswith("torch."):
            rest = dotted.removeprefix("torch.").removeprefix("nn.functional.")
            return "." not in rest and rest in names.ALLOCATIONS | names.COMPUTE | names.LIBRARY
        if isinstance(node.func, ast.Attribute) and self._is_tensor(node.func.value):
            return node.func.attr in names.TENSOR_METHODS | names.COMPUTE | names.LIBRARY
        return False


def _is_size(node: ast.expr) -> bool:
    """A number that says how large a tensor is, or a constant."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in ("size", "numel", "dim", "stride")
    if isinstance(node, ast.Subscript):
        return _is_size(node.value)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Attribute) and node.attr in ("shape", "ndim"))


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _names_tensor(annotation: ast.expr) -> bool:
    text = annotation.value if isinstance(annotation, ast.Constant) else ast.unparse(annotation)
    return str(text).rpartition(".")[2] == "Tensor"
