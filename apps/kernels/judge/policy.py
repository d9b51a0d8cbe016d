"""What ran, seen from outside: program counters by the object they lie in, and the operators the dispatcher saw."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.evaluation import Policy, Rejection
from apps.kernels.jail import freeze

# Allocation, views, shapes and copies between layouts: torch's part of any candidate.
PLUMBING = re.compile(
    r"aten\.(empty|empty_like|empty_strided|empty_permuted|new_empty|new_empty_strided|new_zeros|new_ones|new_full|zeros|"
    r"zeros_like|ones|ones_like|full|full_like|"
    r"zero_|fill_|view|_unsafe_view|reshape|_reshape_alias|as_strided|as_strided_|detach|detach_|alias|t|transpose|"
    r"permute|expand|expand_as|slice|select|narrow|unsqueeze|squeeze|unbind|split|split_with_sizes|chunk|view_as|resize_|"
    r"set_|clone|contiguous|copy_|_to_copy|lift|lift_fresh|_local_scalar_dense|is_pinned|unfold|diagonal|movedim|flatten|"
    r"unflatten|size|stride|dim|numel|sym_size|sym_stride|sym_numel|is_contiguous|data|requires_grad_|item|record_stream|"
    r"pin_memory|arange|scalar_tensor|view_dtype|t_|transpose_|swapaxes_|swapdims_|squeeze_|unsqueeze_|view_as_real|"
    r"view_as_complex|real|imag|movedim|mT|mH)(\.|$)"
)
LIBRARY = re.compile(
    r"aten\.(mm|bmm|addmm|baddbmm|addbmm|matmul|linear|dot|vdot|mv|addmv|ger|addr|convolution|convolution_overrideable|"
    r"_convolution|conv1d|conv2d|conv3d|conv_transpose1d|conv_transpose2d|conv_transpose3d|mkldnn_convolution|"
    r"thnn_conv2d|_slow_conv2d_forward|slow_conv3d|slow_conv3d_forward|mkldnn_linear)(\.|$)"
)
# Namespaces of operators that torch registers itself and that compute; a candidate may register others.
TORCH_SPACES = (
    "aten", "_native", "_quantized", "_test", "debugprims", "inductor", "inductor_prims", "mkl", "mkldnn", "mkldnn_prepacked",
    "onednn", "prims", "quantization", "quantized", "rngprims", "sparse", "static_runtime",
)  # fmt: skip
RUNTIMES = re.compile(
    r"^(libc|libm|libmvec|libpthread|libdl|librt|ld-linux-x86-64|ld-linux-aarch64|libgcc_s|libstdc\+\+|libc\+\+)"
    r"(-[0-9.]+)?\.so(\.|$)"
)
OPENMP = re.compile(r"^lib(g|i)?omp[^.]*\.so(\.|$)")
TORCH = re.compile(r"^(libtorch|libc10|libshm|_C\.)")
PYTHON = re.compile(r"^(python|libpython|_ctypes|libffi)")
PYTHON_MODULES = "/lib-dynload/"  # where Python's own compiled modules lie; others (NumPy's) are a library's

# Where Python's packages lie; an installation under /tmp lies below what is a jail's own directory.
INSTALLED = tuple({f"{prefix}/" for prefix in (sys.prefix, sys.base_prefix, str(Path(sys.prefix).resolve()))})

SHARE = 0.10  # of user time in torch's or a library's compute, above which it is the one that computes
ALLOWANCE_SECONDS = 40e-6  # a call may spend this much in torch without explanation: allocation, views, dispatch
ENOUGH = 40  # samples below which nothing is said
ENOUGH_OF_CALLER = 20  # of the called thread alone: a quarter of it is a coarser question
SHARE_OF_CALL = 0.5  # of a call's own time in torch's compute: then threads of its own beside it excuse nothing
SHARE_OF_CALLER = 0.25  # of the time of the thread that is called: the same
OWN_SHARE = 0.5  # of user time beyond overheads that must lie in the candidate's own objects and runtimes
PYTHON_SECONDS = 300e-6


@dataclass(frozen=True)
class Caller:
    """Samples of the thread that was called: all but OpenMP's, and those in libraries' code beyond allowed products."""

    total: int = 0
    foreign: int = 0

    @property
    def computes_elsewhere(self) -> bool:
        """Whether it surely spends more than a quarter of its time there."""
        return self.total >= ENOUGH_OF_CALLER and _surely(self.foreign, self.total) > SHARE_OF_CALLER


@dataclass(frozen=True)
class Evidence:
    """User-mode samples over some calls by kind of object: own, runtime, openmp, torch, python, other.

    `slowness` says how much longer than usual a window of nothing took here: overheads may take that much longer too.
    `products` are those of torch's that lie where the library's products and convolutions run, in calls like its own.
    `seconds` is how long the calls took. `caller` are the samples of the thread that was called.
    """

    samples: dict[str, int]
    objects: dict[str, int]
    calls: int
    seconds_a_sample: float
    source: str
    slowness: float = 1.0
    products: int = 0
    seconds: float = 0.0
    caller: Caller = Caller()

    @property
    def foreign(self) -> int:
        """Samples in torch's or another library's code, where no product that is allowed was running."""
        return max(0, self.samples.get("torch", 0) + self.samples.get("other", 0) - self.products)

    @property
    def total(self) -> int:
        """User-mode samples but for OpenMP's own: threads that wait there spin, for however long they must wait."""
        return sum(count for kind, count in self.samples.items() if kind != "openmp")

    def share(self, *kinds: str) -> float:
        """Share of the samples in these kinds of object."""
        return sum(self.samples.get(kind, 0) for kind in kinds) / max(1, self.total)

    def seconds_a_call(self, *kinds: str) -> float:
        """Processor seconds a call in these kinds of object."""
        return sum(self.samples.get(kind, 0) for kind in kinds) * self.seconds_a_sample / max(1, self.calls)


def classify(path: str, work: str) -> str:
    """What kind of object a mapping belongs to. Code without a file is nobody's: a library's JIT looks like that."""
    name = path.removesuffix(" (deleted)")
    if name.endswith(freeze.CHANGED):
        return "other"  # not the library's code, whatever file lies below it
    if name.startswith(work.rstrip("/") + "/") and not name.startswith(INSTALLED):
        return "own"
    if not name.startswith("/") and name not in ("[vdso]", "[vsyscall]"):
        return "other"  # whoever names anonymous memory may call it what they like
    base = name.rsplit("/", 1)[-1]
    if OPENMP.match(base):
        return "openmp"
    if base in ("[vdso]", "[vsyscall]") or RUNTIMES.match(base):
        return "runtime"
    if TORCH.match(base):
        return "torch"
    if PYTHON.match(base) or PYTHON_MODULES in name:
        return "python"
    return "other"


def gather(
    addresses: Iterable[int], objects: Iterable[tuple[int, int, str]], work: str
) -> tuple[dict[str, int], dict[str, int]]:
    """Samples by kind and by object's name."""
    ranges = sorted(objects)
    kinds: Counter[str] = Counter()
    names: Counter[str] = Counter()
    for address in addresses:
        if address < 0:
            continue  # in the kernel
        path = next((p for start, end, p in ranges if start <= address < end), "")
        kinds[classify(path, work)] += 1
        names[path.rsplit("/", 1)[-1] or "(no file)"] += 1
    return dict(kinds), dict(names)


def library_calls(operators: Iterable[str]) -> tuple[str, ...]:
    """Products and convolutions of the library among these operators."""
    return tuple(sorted(name for name in operators if LIBRARY.match(name)))


def judge_operators(operators: Iterable[str], policy: Policy) -> list[Rejection]:
    """Operators that the policy doesn't allow."""
    refused = []
    for name in operators:
        if name.partition(".")[0] not in TORCH_SPACES or PLUMBING.match(name):
            continue
        if policy is Policy.LIBRARY and LIBRARY.match(name):
            continue
        refused.append(name)
    if not refused:
        return []
    hint = "products and convolutions only" if policy is Policy.LIBRARY else "none; do it in your own kernel"
    detail = f"torch computes {', '.join(refused)}; under policy {policy.value} torch may compute {hint}"
    return [Rejection("torch operator", "a call", detail)]


def judge_evidence(evidence: Evidence, policy: Policy) -> list[Rejection]:
    """What the samples show against the policy; nothing where there are too few.

    Processor time in torch's or another library's code counts against a candidate, but for what runs where its library's
    products do, under the policy that allows them. What counts is its share of all, which must surely be above a tenth; or of
    a call's own duration, or of the called thread's time: then the call waits for it, whatever other threads do beside it.
    """
    if evidence.total < ENOUGH:
        return []
    top = ", ".join(f"{name} {n}" for name, n in sorted(evidence.objects.items(), key=lambda e: -e[1])[:5])
    found = _library_computes(evidence, policy, top)
    share, seconds = evidence.share("python"), evidence.seconds_a_call("python")
    if share > OWN_SHARE and seconds > PYTHON_SECONDS * evidence.slowness:
        detail = f"{share:.0%} of the processor time of its calls lies in Python ({evidence.total} samples: {top})"
        found.append(Rejection("Python computes", "program counters", detail))
    return found


def is_undecided(evidence: Evidence) -> bool:
    """Whether more samples should be taken: a library seems to have too large a share, but so few can't say it surely."""
    seems = (
        evidence.foreign > SHARE * evidence.total
        or evidence.foreign * evidence.seconds_a_sample > SHARE_OF_CALL * evidence.seconds > 0
        or evidence.caller.foreign > SHARE_OF_CALLER * evidence.caller.total
    )
    return evidence.total >= ENOUGH and seems and _exceeds_overheads(evidence) and not _surely_too_much(evidence)


def _exceeds_overheads(evidence: Evidence) -> bool:
    seconds = evidence.foreign * evidence.seconds_a_sample / max(1, evidence.calls)
    return seconds > ALLOWANCE_SECONDS * evidence.slowness


def _surely_too_much(evidence: Evidence) -> bool:
    return (
        _surely(evidence.foreign, evidence.total) > SHARE
        or _least(evidence.foreign) * evidence.seconds_a_sample > SHARE_OF_CALL * evidence.seconds > 0
        or evidence.caller.computes_elsewhere
    )


def _library_computes(evidence: Evidence, policy: Policy, top: str) -> list[Rejection]:
    if not (_exceeds_overheads(evidence) and _surely_too_much(evidence)):
        return []
    share = evidence.foreign / max(1, evidence.total)
    where = "libraries' code, not in its kernel's"
    if policy is Policy.LIBRARY:
        where = "libraries' code beyond the products and convolutions that policy library allows"
    seen = f"{evidence.total} samples: {top}; copies that torch makes count"
    detail = f"{share:.0%} of the processor time of its calls lies in {where} ({seen})"
    return [Rejection("library computes", "program counters", detail)]


def _surely(part: int, whole: int) -> float:
    """A share, three standard errors below what was seen of it: one honest judgement in a thousand is worse luck."""
    share = part / max(1, whole)
    return share - 3 * math.sqrt(share * (1 - share) / max(1, whole))


def _least(seen: int) -> float:
    """How many samples were to be expected where so many were seen, three standard errors (of Poisson's) below."""
    return seen - 3 * math.sqrt(seen)


def openmp_runtimes(objects: Iterable[tuple[int, int, str]]) -> tuple[str, ...]:
    """The OpenMP runtimes a process has mapped; more than one makes torch's own threads a hundred times slower."""
    names = {path.removesuffix(" (deleted)").rsplit("/", 1)[-1] for _, _, path in objects}
    return tuple(sorted(name for name in names if re.match(r"lib(g|i)?omp", name)))
