"""A kernel as a candidate: Python that builds the C++ at import and calls it from `ModelNew.forward`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from apps.agents.builtin.cpp.printer import print_kernel
from apps.agents.builtin.nest import Kernel
from apps.agents.builtin.reading import LibraryCall, Meaning
from apps.kernels.facts import TensorFact

FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fopenmp",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-trapping-math",
)
WIDE_FLAG = "-mprefer-vector-width=512"

_LOADER = '''

def load(source, flags):
    """Builds the C++ with the host's compiler into a private directory and opens it."""
    key = hashlib.sha256("\\0".join((source, *flags)).encode()).hexdigest()[:16]
    directory = pathlib.Path(tempfile.mkdtemp(prefix=f"kernel-{key}-"))
    code, library = directory / "kernel.cpp", directory / "kernel.so"
    code.write_text(source)
    compiler = os.environ.get("CXX") or "g++"
    command = [*shlex.split(compiler), *flags, "-shared", "-fPIC", str(code), "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{compiler} can't build the kernel:\\n{done.stderr}")
    return ctypes.CDLL(str(library))


def as_expected(tensor, shape, strides, dtype):
    """The tensor in the layout that the kernel was written for."""
    if tensor.dtype != dtype or tuple(tensor.shape) != shape:
        raise ValueError(f"this kernel was written for {dtype} of shape {shape}, not {tensor.dtype} of {tuple(tensor.shape)}")
    laid_out = torch.empty_strided(shape, strides, dtype=dtype)
    return laid_out.copy_(tensor)
'''


@dataclass(frozen=True)
class _Argument:
    """One pointer the kernel takes, as an expression of `forward`."""

    name: str
    pointer: str


def write_candidate(
    meaning: Meaning, kernel: Kernel, states: tuple[TensorFact, ...], *, polynomials: bool, wide: bool, title: str
) -> str:
    """The candidate's whole source. `states` are the model's parameters and buffers; `wide`: 512-bit vectors."""
    return _Candidate(meaning, kernel, states, title).source(print_kernel(kernel, "run", polynomials=polynomials), wide)


class _Candidate:
    def __init__(self, meaning: Meaning, kernel: Kernel, states: tuple[TensorFact, ...], title: str) -> None:
        self.meaning = meaning
        self.kernel = kernel
        self.title = title
        self.read = {buffer.name for buffer in kernel.reads}
        self.calls = _needed(meaning.calls, self.read)
        self.read |= {name for call in self.calls for name in call.reads}
        self.inputs = [fact for fact in meaning.inputs if fact.kind == "input"]
        known = {fact.target: fact for fact in meaning.inputs if fact.kind in ("parameter", "buffer")}
        named = {fact.target or fact.name: fact for fact in states}
        self.states = [*named.values(), *(fact for target, fact in known.items() if target not in named)]
        self.by_target = {fact.target: fact for fact in known.values()}

    def source(self, cpp: str, wide: bool) -> str:
        """Imports, C++, loader, class."""
        flags = [*FLAGS, *([WIDE_FLAG] if wide else [])]
        head = [
            f'"""{self.title}"""',
            "",
            *("import " + name for name in
              ("ctypes", "hashlib", "os", "pathlib", "shlex", "subprocess", "tempfile")),
            "",
            "import torch",
            "from torch import nn",
            "",
            f'SOURCE = r"""\n{cpp}"""',
            f"FLAGS = {flags!r}".replace("'", '"'),
        ]  # fmt: skip
        count = len(self._arguments())
        tail = [
            "",
            "",
            "LIB = load(SOURCE, FLAGS)",
            "RUN = LIB.run",
            f"RUN.argtypes = [ctypes.c_void_p] * {count}",
            "RUN.restype = None",
            "",
            "",
            *self._holder(),
            *self._class(),
        ]
        return "\n".join(head) + _LOADER + "\n".join(tail) + "\n"

    # --- the model

    def _holder(self) -> list[str]:
        if not any("." in (fact.target or "") for fact in self.states):
            return []
        return [
            "class Holder(nn.Module):",
            '    """Keeps parameters under the names the reference gives them."""',
            "",
            "",
        ]

    def _class(self) -> list[str]:
        lines = ["class ModelNew(nn.Module):", "    def __init__(self, *args, **kwargs):", "        super().__init__()"]
        made: set[str] = set()
        for fact in self.states:
            lines += self._state(fact, made)
        for fact in self.meaning.inputs:
            if fact.kind == "constant" and fact.name in self.read:
                values = list(self.meaning.constants[fact.name])
                lines.append(f"        self.{fact.name} = torch.tensor({_plain(values)}, dtype=torch.{fact.dtype})")
        for buffer in self.kernel.scratch:
            lines.append(f"        self.{buffer.name} = torch.empty({buffer.elements}, dtype=torch.{buffer.dtype})")
        return [*lines, "", *self._forward()]

    def _state(self, fact: TensorFact, made: set[str]) -> list[str]:
        target = fact.target or fact.name
        *path, leaf = target.split(".")
        lines, holder = [], "self"
        for i, part in enumerate(path):
            prefix = ".".join(path[: i + 1])
            if prefix not in made:
                made.add(prefix)
                lines.append(f'        {holder}.add_module("{part}", Holder())')
            holder = f'{holder}._modules["{part}"]'
        shape = _tuple(fact.shape)
        empty = f"torch.zeros({shape}, dtype=torch.{fact.dtype})"
        if fact.kind == "parameter":
            grad = "" if fact.requires_grad else ", requires_grad=False"
            lines.append(f'        {holder}.register_parameter("{leaf}", nn.Parameter({empty}{grad}))')
        else:
            lines.append(f'        {holder}.register_buffer("{leaf}", {empty})')
        return lines

    # --- forward

    def _forward(self) -> list[str]:
        names = [fact.name for fact in self.inputs]
        lines = [f"    def forward({', '.join(['self', *names])}):"]
        for fact in self.inputs:
            lines += self._expected(fact, fact.name)
        for fact in self.meaning.inputs:
            if fact.name in self.read and fact.kind in ("parameter", "buffer"):
                lines.append(f"        {fact.name} = {self._state_of(fact)}")
                lines += self._expected(fact, fact.name)
            elif fact.name in self.read and fact.kind == "constant":
                lines.append(f"        {fact.name} = self.{fact.name}")
        for call in self.calls:
            lines.append(f"        {call.result.name} = {call.text}")
            lines += self._expected(call.result, call.result.name)
        results = []
        for buffer, value in zip(self._outputs(), self.meaning.outputs, strict=True):
            results.append(buffer)
            lines.append(f"        {buffer} = torch.empty({_tuple(value.shape)}, dtype=torch.{value.dtype})")
        pointers = ", ".join(argument.pointer for argument in self._arguments())
        lines.append(f"        RUN({pointers})")
        returned = ", ".join(results)
        if self.meaning.nested:
            returned = f"({returned},)" if len(results) == 1 else f"({returned})"
        return [*lines, f"        return {returned}"]

    def _outputs(self) -> list[str]:
        return [f"out{i}" if i else "out" for i in range(len(self.meaning.outputs))]

    def _expected(self, fact: TensorFact, name: str) -> list[str]:
        if fact.dtype == "scalar":
            return [
                f"        if {name} != {fact.value!r}:",
                f'            raise ValueError(f"this kernel was written for {name} = {fact.value!r}, not {{{name}}}")',
            ]
        if fact.name not in self.read:
            return []
        shape, steps, dtype = _tuple(fact.shape), _tuple(fact.strides), f"torch.{fact.dtype}"
        return [
            f"        if {name}.shape != {shape} or {name}.stride() != {steps} or {name}.dtype != {dtype}:",
            f"            {name} = as_expected({name}, {shape}, {steps}, {dtype})",
        ]

    def _state_of(self, fact: TensorFact) -> str:
        *path, leaf = (fact.target or fact.name).split(".")
        holder = "self" + "".join(f'._modules["{part}"]' for part in path)
        return f'{holder}._{"parameters" if fact.kind == "parameter" else "buffers"}["{leaf}"]'

    def _arguments(self) -> list[_Argument]:
        found = [_Argument(buffer.name, f"{buffer.name}.data_ptr()") for buffer in self.kernel.reads]
        found += [_Argument(buffer.name, f"{buffer.name}.data_ptr()") for buffer in self.kernel.writes]
        return found + [_Argument(b.name, f"self.{b.name}.data_ptr()") for b in self.kernel.scratch]


def _needed(calls: tuple[LibraryCall, ...], read: set[str]) -> tuple[LibraryCall, ...]:
    """Those whose results the kernel or another needed one reads."""
    wanted, needed = set(read), []
    for call in reversed(calls):
        if call.result.name in wanted:
            needed.append(call)
            wanted |= set(call.reads)
    return tuple(reversed(needed))


def _tuple(sizes: tuple[int, ...]) -> str:
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(map(str, sizes))})"


def _plain(values: list[float | int | bool]) -> str:
    def one(value: float | int | bool) -> str:
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        return repr(value)

    return "[" + ", ".join(one(value) for value in values) + "]"
