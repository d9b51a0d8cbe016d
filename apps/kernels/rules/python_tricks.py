"""Python that looks for the answer, hides work or bends the measurement, instead of computing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from apps.kernels.evaluation import Policy, Rejection
from apps.kernels.rules import names
from apps.kernels.rules.reading import Reading, texts

COMPILERS = (
    "torch.compile", "torch.jit", "torch._dynamo", "torch._inductor", "torch.export", "torch.fx", "torch.package",
    "torch.onnx", "torch.quantization", "torch.ao",
)  # fmt: skip
COMPILERS_ALLOWED = (
    "torch.jit.ignore",
    "torch.jit.unused",
    "torch.jit.is_scripting",
    "torch.jit.is_tracing",
    "torch.fx.wrap",
)
WORKERS = (
    "threading.Thread", "threading.Timer", "_thread.start_new_thread", "concurrent.futures.ThreadPoolExecutor",
    "concurrent.futures.ProcessPoolExecutor", "multiprocessing.Process", "multiprocessing.Pool", "os.fork", "os.forkpty",
    "torch.multiprocessing.spawn", "torch.multiprocessing.Process", "multiprocessing.pool.ThreadPool", "asyncio.run",
)  # fmt: skip
STREAMS = (
    "torch.cuda.Stream",
    "torch.cuda.stream",
    "torch.cuda.ExternalStream",
    "torch.cuda.set_stream",
    "torch.Stream",
)
SNOOPING = (
    "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._getframe", "sys._current_frames", "sys.settrace",
    "sys.setprofile", "threading.settrace", "threading.setprofile", "inspect.currentframe", "inspect.stack",
    "inspect.trace", "inspect.getouterframes", "inspect.getinnerframes", "ctypes.pythonapi", "traceback.walk_stack",
    "traceback.extract_stack",
)  # fmt: skip
SNOOPING_ATTRIBUTES = frozenset({"f_back", "f_locals", "f_globals", "tb_frame", "gi_frame", "cr_frame"})
CLOCKS = (
    "time.time", "time.perf_counter", "time.perf_counter_ns", "time.monotonic", "time.monotonic_ns", "time.time_ns",
    "time.process_time", "time.thread_time", "time.sleep", "torch.cuda.Event", "timeit.default_timer",
)  # fmt: skip
PROCESS_STATE = (
    "torch.set_flush_denormal", "torch.set_float32_matmul_precision", "torch.set_default_dtype", "torch.set_default_device",
    "torch.set_default_tensor_type", "torch.manual_seed", "torch.seed", "random.seed",
)  # fmt: skip
PATCHABLE = frozenset(
    {"torch", "time", "builtins", "gc", "sys", "ctypes", "timeit", "statistics", "math", "os", "subprocess"}
)
FAST_MATH = re.compile(r"(^|\s)(-Ofast|-ffast-math|-funsafe-math-optimizations)(\s|$)")
COMPILER = re.compile(r".*(g\+\+|clang\+\+|gcc|clang|cc|CXX)(-\d+)?\W*$")
LINKS = re.compile(r"^-l(" + "|".join(sorted(names.LIBRARY_FILES)) + r")$")
LOADS = re.compile(
    r"(^|/)lib(" + "|".join(sorted(names.LIBRARY_FILES)) + r")\.so|^(" + "|".join(sorted(names.LIBRARY_FILES)) + r")$"
)


def rejections(reading: Reading, policy: Policy) -> Iterator[Rejection]:
    """Every trick the text shows."""
    in_call = {id(node) for function in reading.called for node in ast.walk(function)}
    joined = _joined_pools(reading, in_call)
    for node in ast.walk(reading.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node)
        elif isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
            yield from _mentions(reading, node)
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.Delete):
            yield from _patches(reading, node)
        elif isinstance(node, ast.ClassDef):
            yield from _classes(reading, node)
        if isinstance(node, ast.Call) and id(node) not in joined:
            yield from _calls(reading, node, id(node) in in_call, policy)
    yield from _reference(reading)
    yield from _flags(reading)
    yield from _links(reading, policy)


def _at(node: ast.AST, rule: str, detail: str) -> Rejection:
    return Rejection(rule, f"line {getattr(node, 'lineno', 1)}", detail)


def _is(dotted: str, wanted: tuple[str, ...]) -> bool:
    return any(dotted == name or dotted.startswith(name + ".") for name in wanted)


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[Rejection]:
    modules = [name.name for name in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for module in modules:
        root = module.split(".")[0]
        if root in ("problem", "reference", "__main__"):
            yield _at(node, "imports the reference", f"import of {module}; a candidate stands on its own")
        if root in names.FRAMEWORKS:
            yield _at(node, "another library computes", f"import of {module}; compute it in a kernel of your own")
    if isinstance(node, ast.ImportFrom):
        for name in node.names:
            dotted = f"{node.module}.{name.name}"
            if _is(dotted, COMPILERS) and not _is(dotted, COMPILERS_ALLOWED):
                yield _at(
                    node, "torch compiles", f"{dotted}; the kernel must be the candidate's own, not torch.compile's"
                )


def _mentions(reading: Reading, node: ast.Attribute | ast.Name) -> Iterator[Rejection]:
    if isinstance(node, ast.Attribute) and node.attr in SNOOPING_ATTRIBUTES:
        yield _at(node, "looks into frames", f".{node.attr}; a candidate computes from its inputs alone")
    dotted = reading.dotted(node)
    if dotted in SNOOPING:
        yield _at(node, "looks into frames", f"{dotted}; a candidate computes from its inputs alone")
    if isinstance(node, ast.Attribute) and _is_compiler(dotted):
        yield _at(node, "torch compiles", f"{dotted}; the kernel must be the candidate's own, not torch's compiler's")


def _is_compiler(dotted: str) -> bool:
    """Exactly the name of a compiler, or of a member of one (so that a chain of attributes is named once)."""
    inner = dotted in COMPILERS or dotted.rpartition(".")[0] in COMPILERS
    return inner and dotted not in ("torch.jit", "torch.fx", "torch.export") and not _is(dotted, COMPILERS_ALLOWED)


def _patches(reading: Reading, node: ast.Assign | ast.AugAssign | ast.Delete) -> Iterator[Rejection]:
    targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
    for target in targets:
        base = target.value if isinstance(target, ast.Subscript) else target
        dotted = reading.dotted(base)
        root = dotted.split(".")[0]
        if isinstance(target, ast.Subscript):
            if dotted in ("sys.modules", "builtins.__dict__", "torch.__dict__") or dotted.startswith("torch.Tensor."):
                yield _at(node, "patches", f"writes to {dotted}; leave modules as they are")
        elif isinstance(target, ast.Attribute) and dotted.startswith("torch.backends."):
            yield _at(node, "process state", f"sets {dotted}; precision and modes stay as the judge set them")
        elif isinstance(target, ast.Attribute) and root in PATCHABLE and root in _roots(reading):
            yield _at(node, "patches", f"replaces {dotted}; leave modules as they are")


def _roots(reading: Reading) -> set[str]:
    return {full.split(".")[0] for full in reading.aliases.values()}


def _classes(reading: Reading, node: ast.ClassDef) -> Iterator[Rejection]:
    bases = [reading.dotted(base) for base in node.bases]
    if any(base in ("torch.Tensor", "torch.nn.Parameter") for base in bases):
        yield _at(node, "tensor subclass", f"class {node.name} derives from a tensor; return plain tensors")
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name in ("__torch_function__", "__torch_dispatch__"):
            yield _at(item, "tensor subclass", f"{item.name} changes what tensors do; return plain tensors")


def _reference(reading: Reading) -> Iterator[Rejection]:
    """ModelNew built on Model: the reference with another name."""
    if reading.model is None:
        return
    for base in reading.model.bases:
        if reading.dotted(base).rpartition(".")[2] == "Model":
            yield _at(reading.model, "uses the reference", "ModelNew derives from Model; write its forward yourself")
    for node in ast.walk(reading.model):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Model":
            yield _at(node, "uses the reference", "ModelNew constructs Model; write its forward yourself")


def _calls(reading: Reading, node: ast.Call, in_call: bool, policy: Policy) -> Iterator[Rejection]:
    dotted = reading.dotted(node.func)
    if dotted in WORKERS:
        yield _at(
            node, "work beside the call", f"{dotted}; a call does its own work, in OpenMP's threads if in several"
        )
    elif _is(dotted, STREAMS):
        yield _at(node, "work beside the call", f"{dotted}; work on the current stream only")
    elif dotted in PROCESS_STATE:
        yield _at(node, "process state", f"{dotted}; precision, defaults and seeds stay as the judge set them")
    elif dotted in ("exec", "eval") and node.args and not isinstance(node.args[0], ast.Constant):
        yield _at(node, "hidden code", f"{dotted}() of a text made at run time; write the code out")
    elif dotted == "setattr" and node.args and _module_like(reading, node.args[0]):
        yield _at(node, "patches", f"setattr({ast.unparse(node.args[0])}, ...); leave modules as they are")
    elif dotted == "getattr" and len(node.args) > 1 and _module_like(reading, node.args[0]):
        if not isinstance(node.args[1], ast.Constant):
            yield _at(node, "hidden code", f"getattr({ast.unparse(node.args[0])}, ...) of a name made at run time")
    elif isinstance(node.func, ast.Attribute) and node.func.attr in _HOOKS:
        yield _at(node, "hidden code", f"{node.func.attr}; what a call does belongs into forward")
    if in_call:
        yield from _calls_in_a_call(node, dotted)


_HOOKS = names.words(
    "register_forward_hook register_forward_pre_hook register_module_forward_hook register_module_forward_pre_hook"
)
_NUMPY_PLUMBING = names.words(
    "array asarray ascontiguousarray empty empty_like frombuffer zeros dtype int32 int64 float32"
)


def _calls_in_a_call(node: ast.Call, dotted: str) -> Iterator[Rejection]:
    if dotted in CLOCKS:
        yield _at(node, "watches the clock", f"{dotted} in a call; measure in prepare() or not at all")
    elif dotted in ("open", "io.open", "os.open", "numpy.load", "numpy.save", "torch.load", "torch.save"):
        yield _at(node, "files in a call", f"{dotted}; read what you need when the model is constructed")
    elif dotted.startswith("numpy.") and dotted.split(".")[1] not in _NUMPY_PLUMBING | {"ctypeslib"}:
        yield _at(node, "another library computes", f"{dotted} in a call; compute it in a kernel of your own")
    elif dotted.startswith("subprocess.") or dotted in ("os.system", "os.popen"):
        yield _at(node, "work beside the call", f"{dotted} in a call; compile when the module is imported")


def _joined_pools(reading: Reading, in_call: set[int]) -> set[int]:
    """Thread pools that a `with` outside of calls ends before it goes on: kernels built at once."""
    found = set()
    for node in ast.walk(reading.tree):
        if isinstance(node, ast.With) and id(node) not in in_call:
            expressions = [item.context_expr for item in node.items]
            found |= {
                id(one)
                for one in expressions
                if isinstance(one, ast.Call) and reading.dotted(one.func) == "concurrent.futures.ThreadPoolExecutor"
            }
    return found


def _module_like(reading: Reading, node: ast.expr) -> bool:
    dotted = reading.dotted(node)
    if dotted.split(".")[0] not in PATCHABLE or not isinstance(node, ast.Name | ast.Attribute):
        return False
    name: ast.expr = node
    while isinstance(name, ast.Attribute):
        name = name.value
    return isinstance(name, ast.Name) and name.id in reading.aliases and not dotted.startswith("torch.ops")


def _flags(reading: Reading) -> Iterator[Rejection]:
    """Fast-math where a command links: it switches the whole process to flush-to-zero. Compiling alone is fine.

    Nothing but a tripwire: the state of the process is compared when it runs.
    """
    elsewhere = _compile_only_nodes(reading.tree) | _only_spoken_of(reading.tree)
    whole = [text for _, text in texts(reading.tree)]
    if "-c" in whole:
        return  # compiles and links in steps of their own; the state of the process is compared when it runs
    for node in ast.walk(reading.tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in elsewhere:
            continue
        if FAST_MATH.search(node.value) and _is_command(node.value):
            advice = "take -fno-math-errno -fno-trapping-math -fassociative-math -fno-signed-zeros instead"
            yield _at(node, "fast-math when linking", f"{node.value.strip()} flushes subnormals everywhere; {advice}")


def _is_command(text: str) -> bool:
    """Whether a text is flags, or a compiler's command line, rather than words about them."""
    parts = text.split()
    return "\n" not in text.strip() and (all(part.startswith("-") for part in parts) or bool(COMPILER.match(parts[0])))


def _compile_only_nodes(tree: ast.Module) -> set[int]:
    """Texts that reach `extra_cflags` (compiled without linking), directly or through one name, and docstrings."""
    found: set[int] = set()
    through: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("extra_cflags", "extra_cuda_cflags"):
            found |= {id(inner) for inner in ast.walk(node.value)}
            through |= {inner.id for inner in ast.walk(node.value) if isinstance(inner, ast.Name)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            found.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in through for t in node.targets):
            found |= {id(inner) for inner in ast.walk(node.value)}
    return found


_ABOUT_TEXT = names.words(
    "replace remove discard removeprefix removesuffix startswith endswith count index find partition split sub match search "
    "fullmatch findall compile"
)


def _only_spoken_of(tree: ast.Module) -> set[int]:
    """Texts that flags are compared with, searched for or rid of, directly or through one name: no compiler sees them."""
    found: set[int] = set()
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            inside |= {id(inner) for inner in ast.walk(node)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ABOUT_TEXT:
            inside |= {id(inner) for argument in node.args for inner in ast.walk(argument)}
    found |= inside
    loads = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    spoken = {node.id for node in loads} - {node.id for node in loads if id(node) not in inside}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in spoken for t in node.targets):
            found |= {id(inner) for inner in ast.walk(node.value)}
    return found


def _links(reading: Reading, policy: Policy) -> Iterator[Rejection]:
    if policy is Policy.LIBRARY:
        return
    own = {"-ltorch", "-ltorch_cpu", "-lc10", "-ltorch_python"}  # what load_inline links anyway
    for line, text in texts(reading.tree):
        if LINKS.match(text) and text not in own:
            yield Rejection(
                "another library computes", f"line {line}", f"links {text}; compute it in a kernel of your own"
            )
    for node in ast.walk(reading.tree):
        if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
            continue
        loader = reading.dotted(node.func).rpartition(".")[2] in ("CDLL", "PyDLL", "LoadLibrary", "find_library")
        if loader and isinstance(node.args[0].value, str) and LOADS.search(node.args[0].value):
            yield _at(
                node, "another library computes", f"loads {node.args[0].value}; compute it in a kernel of your own"
            )
