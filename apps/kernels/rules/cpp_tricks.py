"""C++ that calls torch's or a library's compute, leaves work behind, or changes the process around it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.kernels.evaluation import Policy, Rejection
from apps.kernels.rules import names
from apps.kernels.rules.cpp_text import without_comments

_FUNCTION = re.compile(r"(?<![\w:])(?:::)?(?:at|torch|aten)::((?:\w+::)*)(\w+)\s*\(")
_METHOD = re.compile(r"(?<![\w.>])(\w+)\s*(?:\.|->)\s*(\w+)\s*\(")
_TENSOR = re.compile(r"\b(?:torch|at)::Tensor\b\s*(?:const\b)?\s*[&*]*\s*(\w+)")
_AUTO = re.compile(
    r"\bauto\s*&?\s*(\w+)\s*=\s*(?:(?:torch|at)::(?:empty|zeros|ones|full)\w*\s*\(|\w+\s*\.\s*contiguous\s*\()"
)
_FORBIDDEN: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("work beside the call",
     re.compile(r"(?<![\w.:>])(?:::|std::)?(v?fork|system|popen|posix_spawnp?|exec[vl][pe]*)\s*\("),
     "a kernel starts no process"),
    ("hidden code", re.compile(r"\b(dlopen|dlsym|dlmopen)\s*\("), "call what you need by name"),
    ("looks into frames", re.compile(r"\b(PyEval_\w+|PyFrame_\w+|PyGC_\w+|PyThreadState_\w+|ptrace|process_vm_readv)\s*\("),
     "a kernel computes from its inputs alone"),
    ("torch computes", re.compile(r"\b((?:at::native|torch::jit|torch::nn|torch::autograd|c10::Dispatcher)\b[\w:]*)"),
     "compute it in a kernel of your own"),
)  # fmt: skip
_UNNAMED = re.compile(r"\bstd::j?thread\s*[({]")
_DETACHED = re.compile(r"\s*\.\s*detach\s*\(\s*\)")
_DETACH = re.compile(r"\b(\w+)\s*\.\s*detach\s*\(\s*\)")
_THREAD = re.compile(r"\bstd::(?:j?thread)\s+(\w+)|\bstd::(?:j?thread)\s*[({]")
_LEFT_ALONE = re.compile(r"\b(pthread_detach|PTHREAD_CREATE_DETACHED)\b")
_WAITED_FOR = re.compile(
    r"\b(condition_variable\w*|atomic\w*|mutex|\w*semaphore|latch|barrier|pthread_(?:cond|barrier|mutex)_\w+|"
    r"sem_(?:wait|post)|__atomic_\w+|__sync_\w+|_Atomic|futex\w*)\b"
)
_BODY = re.compile(r"\s*(?:(?:const|noexcept|override|final)\b(?:\s*\([^)]*\))?\s*)*(?:->[^;{]*)?\{")
_FLUSH = re.compile(r"\b(_MM_SET_FLUSH_ZERO_MODE|_MM_SET_DENORMALS_ZERO_MODE|_mm_setcsr)\s*\(")
_BLAS = re.compile(
    r"\b(cblas_\w+|mkl_[sdcz]\w+|cublas[A-Z]\w*|cudnn[A-Z]\w*|dnnl_\w+|[sdcz](?:gemm|gemv|syrk|dot|axpy)_)\s*\("
)
_INCLUDE = re.compile(
    r"#\s*include\s*[<\"]((?:cblas|mkl\w*|dnnl\w*|cublas\w*|cudnn\w*|blis|f77blas)\.h(?:pp)?|oneapi/[^>\"]*|Eigen/[^>\"]*|"
    r"ATen/native/[^>\"]*|cutlass/[^>\"]*)[>\"]"
)


def rejections(source: str, first_line: int, policy: Policy) -> Iterator[Rejection]:
    """What a C++ text shows; `first_line` is the line of the candidate it begins in."""
    code = without_comments(source)

    def at(position: int, rule: str, detail: str) -> Rejection:
        return Rejection(rule, f"line {first_line + code.count(chr(10), 0, position)}", detail)

    for rule, pattern, advice in _FORBIDDEN:
        for match in pattern.finditer(code):
            yield at(match.start(), rule, f"{match[1]} in C++; {advice}")
    yield from (at(*found) for found in _aten(code, policy))
    yield from (at(*found) for found in _threads(code))
    if "_mm_getcsr" not in code and "_MM_GET_FLUSH_ZERO_MODE" not in code:
        for match in _FLUSH.finditer(code):
            detail = f"{match[1]} in C++ stays on after the call; restore the old mode before you return"
            yield at(match.start(), "process state", detail)
    if policy is Policy.KERNEL:
        yield from (at(*found) for found in _libraries(source, code))


def library_functions(source: str, first_line: int) -> Iterator[str]:
    """Products and convolutions of the library that a C++ text calls, as `at::mm (line 12)`."""
    code = without_comments(source)
    for match in _FUNCTION.finditer(code):
        if match[2] in names.LIBRARY and not match[1]:
            yield f"at::{match[2]} (line {first_line + code.count(chr(10), 0, match.start())})"


def _aten(code: str, policy: Policy) -> Iterator[tuple[int, str, str]]:
    advice = "compute it in a kernel of your own"
    for match in _FUNCTION.finditer(code):
        space, name = match[1], match[2]
        if space and not space.startswith(("_ops::", "linalg", "special", "fft")) and space != "linalg::":
            continue
        if _computes(name, policy):
            yield match.start(), "torch computes", f"{match[0].rstrip('( ')} in C++; {advice}"
    tensors = set(_TENSOR.findall(code)) | set(_AUTO.findall(code))
    for match in _METHOD.finditer(code):
        if match[1] in tensors and match[2] not in names.FILLING and _computes(match[2], policy):
            yield match.start(), "torch computes", f"Tensor.{match[2]} in C++; {advice}"


def _computes(name: str, policy: Policy) -> bool:
    plain = name.removesuffix("_").removesuffix("_out")
    if plain in names.LIBRARY:
        return policy is Policy.KERNEL
    return plain in names.COMPUTE


def _threads(code: str) -> Iterator[tuple[int, str, str]]:
    """Threads left to themselves. Where anything waits for anything they may be a pool that each call waits for."""
    if _WAITED_FOR.search(code):
        return
    advice = "join what you start, in the call"
    for match in _LEFT_ALONE.finditer(code):
        yield match.start(), "work beside the call", f"{match[1]} in C++; {advice}"
    if not _THREAD.search(code):
        return
    tensors = set(_TENSOR.findall(code)) | set(_AUTO.findall(code))
    for match in _DETACH.finditer(code):
        if match[1] not in tensors:
            yield match.start(), "work beside the call", f"{match[1]}.detach() in C++; {advice}"
    for match in _UNNAMED.finditer(code):
        if _DETACHED.match(code, _after_brackets(code, match.end() - 1)):
            yield match.start(), "work beside the call", f"{match[0]}...).detach() in C++; {advice}"


def _after_brackets(code: str, at: int) -> int:
    """Where the bracket that opens at a place has been closed; the end of the text if it isn't."""
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place] in "({[") - (code[place] in ")}]")
        if depth == 0:
            return place + 1
    return len(code)


def _defines(name: str, code: str) -> bool:
    """Whether a function of that name is written there; then it is one of its own."""
    return any(
        _BODY.match(code, _after_brackets(code, match.end() - 1))
        for match in re.finditer(rf"\b{re.escape(name)}\s*\(", code)
    )


def _libraries(source: str, code: str) -> Iterator[tuple[int, str, str]]:
    advice = "compute it in a kernel of your own"
    for match in _BLAS.finditer(code):
        if not _defines(match[1], code):
            yield match.start(), "another library computes", f"{match[1]} in C++; {advice}"
    with_names = without_comments(source, keep_includes=True)
    for match in _INCLUDE.finditer(with_names):
        yield match.start(), "another library computes", f"includes {match[1]}; {advice}"
