"""A kernel as a candidate: Python that builds the C++ at import and calls it from `ModelNew.forward`."""

from __future__ import annotations

import math

from apps.agents.builtin.cpp.printer import print_kernel
from apps.agents.builtin.form import Buffer
from apps.agents.builtin.nest import Kernel
from apps.agents.builtin.reading import Meaning, Round
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
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    code, library = directory / "kernel.cpp", directory / "kernel.so"
    code.write_text(source)
    compiler = os.environ.get("CXX") or "g++"
    if shutil.which(shlex.split(compiler)[0]) is None:
        raise RuntimeError(f"there is no {compiler} here: install a C++ compiler, or name yours in CXX")
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
        self.rounds = meaning.rounds
        self.read |= {name for call in meaning.calls for name in call.reads}
        self.inplace = dict(kernel.inplace)
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
              ("atexit", "ctypes", "hashlib", "os", "pathlib", "shlex", "shutil", "subprocess", "tempfile")),
            "",
            "import torch",
            "from torch import nn",
            "",
            f'SOURCE = r"""\n{cpp}"""',
            f"FLAGS = {flags!r}".replace("'", '"'),
        ]  # fmt: skip
        count = len(self._buffers())
        tail = ["", "", "LIB = load(SOURCE, FLAGS)"]
        for number in (*(str(i) for i, statements in enumerate(self.kernel.rounds) if statements), ""):
            tail += [
                f"RUN{number} = LIB.run{number}",
                f"RUN{number}.argtypes = [ctypes.c_void_p] * {count}",
                f"RUN{number}.restype = None",
            ]
        tail += [
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
        made: set[str] = set()
        for number, round_ in enumerate(self.rounds):
            lines += self._round(number, round_, made)
        results = []
        for buffer, value in zip(self._outputs(), self.meaning.outputs, strict=True):
            results.append(buffer)
            lines.append(f"        {buffer} = {self._memory(buffer, value.shape, value.dtype)}")
        lines.append(f"        RUN({self._pointers(made | set(results))})")
        returned = ", ".join(results)
        if self.meaning.nested:
            returned = f"({returned},)" if len(results) == 1 else f"({returned})"
        return [*lines, f"        return {returned}"]

    def _memory(self, name: str, shape: tuple[int, ...], dtype: str) -> str:
        """New memory, or that of the product which this takes the place of."""
        if name in self.inplace:
            return f"{self.inplace[name]}.view({_tuple(shape)})"
        return f"torch.empty({_tuple(shape)}, dtype=torch.{dtype})"

    def _round(self, number: int, round_: Round, made: set[str]) -> list[str]:
        """Operands computed into memory of their own, then the library's calls; what is there by now is `made`."""
        lines = []
        for operand in round_.operands:
            fact = operand.fact
            lines.append(f"        {fact.name} = {self._memory(fact.name, fact.shape, fact.dtype)}")
            made.add(fact.name)
        if self.kernel.rounds[number]:
            lines.append(f"        RUN{number}({self._pointers(made)})")
        for call in round_.calls:
            lines.append(f"        {call.result.name} = {call.text}")
            lines += self._expected(call.result, call.result.name)
            made.add(call.result.name)
        return lines

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

    def _buffers(self) -> list[Buffer]:
        """What each function of the kernel takes, in order."""
        return [*self.kernel.reads, *self.kernel.writes, *self.kernel.scratch]

    def _pointers(self, made: set[str]) -> str:
        """Their addresses as a call's arguments; of what isn't there yet, none."""
        later = {call.result.name for call in self.meaning.calls} | {o.fact.name for o in self.meaning.operands}
        later |= set(self._outputs())
        scratch = {buffer.name for buffer in self.kernel.scratch}
        return ", ".join(
            "None" if buffer.name in later - made
            else f"{'self.' if buffer.name in scratch else ''}{buffer.name}.data_ptr()"
            for buffer in self._buffers()
        )  # fmt: skip


def _tuple(sizes: tuple[int, ...]) -> str:
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(map(str, sizes))})"


def _plain(values: list[float | int | bool]) -> str:
    def one(value: float | int | bool) -> str:
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        return repr(value)

    return "[" + ", ".join(one(value) for value in values) + "]"
