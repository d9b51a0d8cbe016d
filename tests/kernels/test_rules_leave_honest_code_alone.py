"""Static rules have no false alarms: each of these is what an honest candidate may well contain."""

from __future__ import annotations

import textwrap

import pytest

from apps.kernels.candidate import read_candidate
from apps.kernels.evaluation import Language, Policy

HOUSE = '''
import ctypes, hashlib, os, subprocess, tempfile
from pathlib import Path
import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
// at::relu(x) is what torch does; this does it in one pass
extern "C" void softsign(const float* __restrict x, float* __restrict y, int64_t n) {
    /* no system("...") and no fork() here */
    #pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + __builtin_fabsf(x[i]));
}
"""
FLAGS = ["-O3", "-march=native", "-fopenmp", "-std=c++17", "-fPIC", "-shared"]


def load(source, flags):
    digest = hashlib.sha256((source + repr(flags)).encode()).hexdigest()[:16]
    directory = Path(tempfile.mkdtemp(prefix=f"kernel-{digest}-"))
    (directory / "kernel.cpp").write_text(source)
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, *flags, "kernel.cpp", "-o", "kernel.so"], cwd=directory, check=True)
    return ctypes.CDLL(str(directory / "kernel.so"))


LIB = load(SOURCE, FLAGS)
LIB.softsign.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        LIB.softsign(x.data_ptr(), y.data_ptr(), x.numel())
        return y
'''

LOAD_INLINE = '''
import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
torch::Tensor relu_forward(torch::Tensor x) {
    TORCH_CHECK(x.is_contiguous(), "x must be contiguous, don't call x.relu()");
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    int64_t n = x.numel(), rows = x.size(0);
    at::parallel_for(0, n, 4096, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) out[i] = in[i] > 0 ? in[i] : 0;
    });
    return y.view({rows, n / rows});
}
"""
module = load_inline(
    name="relu_ext", cpp_sources=source, functions=["relu_forward"], extra_cflags=["-O3", "-ffast-math"], verbose=False
)


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return module.relu_forward(x)
'''

# Bodies of `forward` (indented by the test) in a candidate that has LIB, ext, self.weight and self.rows.
FORWARDS = {
    "integer division of sizes": "n = x.numel() // 2 + 4 // 2\nreturn LIB.f(n)",
    "arithmetic on shapes": "rows, cols = x.shape\nreturn LIB.f(rows * cols, x.size(0) * x.stride(0))",
    "pass in a docstring": '"""pass: nothing is computed with x + y here."""\npass\nreturn LIB.f(x.data_ptr())',
    "a number beside the tensor": "scale = 1.0 / (alpha * 2)\nreturn LIB.f(x.data_ptr(), scale)",
    "checking dtypes": "if x.dtype != torch.float32 or not x.is_contiguous():\n    x = x.float().contiguous()\nreturn LIB.f(x)",
    "asserting": "assert x.dim() == 2 and x.shape[1] == self.rows * 2, f'got {x.shape}'\nreturn LIB.f(x)",
    "an extension function named like torch's": "return ext.softmax(x)",
    "another named matmul": "return ext.matmul(x, self.weight)",
    "a ctypes function named exp": "LIB.exp(x.data_ptr())\nreturn x",
    "set and dict methods": "seen = set()\nseen.add(x.shape)\nreturn LIB.f(sum([1, 2]), abs(-1), max(3, min(4, 5)))",
    "string arithmetic": "name = 'a' + 'b' * 2\nreturn LIB.f(name)",
    "a view and its transpose": "y = x.view(-1, 4).t().unsqueeze(0).expand(2, -1, -1)\nreturn LIB.f(y.data_ptr())",
    "slicing": "head = x[:, : self.rows // 2]\nreturn LIB.f(head.data_ptr(), head.stride(0))",
    "filling an output": "y = torch.zeros(x.shape[0], dtype=x.dtype)\ny.fill_(0)\ny.copy_(x[:, 0])\nreturn y",
    "new_empty": "y = x.new_empty((x.shape[0] + 1, 2 * x.shape[1]))\nreturn y",
    "full and arange": "return torch.full((4,), 1.0), torch.arange(4)",
    "no_grad": "with torch.no_grad():\n    return LIB.f(x.data_ptr())",
    "pointers in arithmetic": "p = x.data_ptr() + 4 * x.element_size()\nreturn LIB.f(p)",
    "threads asked for": "return LIB.f(x.data_ptr(), torch.get_num_threads())",
    "weights handed over": "return LIB.f(self.weight.data_ptr(), self.linear.weight.data_ptr(), self.linear.bias.data_ptr())",
    "a walrus and a loop": "for i in range(x.shape[0]):\n    if (r := i % 2) and -i < 0:\n        LIB.f(r)\nreturn x",
    "comparing with None": "if x is None or self.weight is None:\n    raise ValueError('x')\nreturn LIB.f(x.data_ptr())",
    "ctypes casts": "return LIB.f(ctypes.c_void_p(x.data_ptr()), ctypes.c_float(0.5), ctypes.byref(ctypes.c_int(1)))",
    "math on numbers": "return LIB.f(math.sqrt(2.0 / math.pi) * 0.5, math.exp(-1), x.data_ptr())",
    "multiplying counts": "blocks = (x.numel() + 1023) // 1024\nblocks *= 2\nblocks = -blocks\nreturn LIB.f(blocks)",
}

AROUND = {
    "a try around an import": "try:\n    import numpy as np\nexcept ImportError:\n    np = None",
    "numpy imported and used in set-up": "import numpy as np\nTABLE = np.linspace(0, 1, 16).tolist() if False else []",
    "the reference kept for comparison": "class Model(nn.Module):\n    def forward(self, x):\n        return torch.relu(x)",
    "packing weights": (
        "class Packer:\n    @staticmethod\n    def pack(w):\n        return (w.t() * 2).contiguous().reshape(-1, 8).sum(1)"
    ),
    "a main guard that times itself": (
        "if __name__ == '__main__':\n    import time\n    t = time.perf_counter()\n    print(time.perf_counter() - t)"
    ),
    "a lock around the build": "import threading\nLOCK = threading.Lock()",
    "kernels built at once": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(2) as pool:\n    BUILT = list(pool.map(str, ['a', 'b']))"
    ),
    "garbage collected before the build": "import gc\ngc.collect()",
    "flags with safe maths": "EXTRA = ['-fno-math-errno', '-fno-trapping-math', '-ffinite-math-only', '-fassociative-math']",
    "a word about fast-math": "NOTE = 'never link with -ffast-math, it flushes subnormals'",
    "fast-math filtered out": "FLAGS = [flag for flag in os.environ.get('FLAGS', '').split() if flag != '-ffast-math']",
    "fast-math replaced in a text": "FLAGS = os.environ.get('FLAGS', '').replace('-Ofast', '-O3').split()",
    "fast-math in a set of what is refused": "BAD = {'-Ofast', '-ffast-math'}\nFLAGS = [f for f in ['-O3'] if f not in BAD]",
    "fast-math where nothing is linked": "STEPS = [['g++', '-c', '-ffast-math', 'k.cpp'], ['g++', '-shared', 'k.o']]",
    "model.eval() and literal exec": "m = nn.Identity()\nm.eval()\nexec('VERSION = 1')",
    "getattr with a literal": "dtype = getattr(torch, 'float32')",
    "environment for OpenMP": "os.environ.setdefault('OMP_PROC_BIND', 'close')",
    "a text about cheating": "HELP = 'torch.compile(model) and gc.get_objects() are not used'",
    "a dataclass with fields": "from dataclasses import dataclass\n@dataclass\nclass Plan:\n    rows: int = 4 * 2",
}

CPP = {
    "apostrophes and digits": "int64_t n = 1'000'000; char c = '\"'; // it's torch::relu(x)",
    "strings": 'const char* text = "cblas_sgemm(system(\\"x\\"))"; int at_exp = 3;',
    "own functions named like libraries'": "static void sgemm(const float* a) {}\nvoid f(const float* a) { sgemm(a); }",
    "own struct methods": "struct Acc { float sum() const { return 1; } };\nfloat f(Acc a) { return a.sum(); }",
    "std functions": "float f(float x) { return std::exp(x) + std::max(x, 0.f) + std::abs(x) + std::tanh(x); }",
    "a pool's thread, which calls wait for": (
        "std::mutex m; std::condition_variable c; void f() { std::thread([] { for (;;) { } }).detach(); }"
    ),
    "threads that are joined": "void f() { std::thread t([]{}); t.join(); }",
    "flush-to-zero that is put back": "void f() { auto old = _mm_getcsr(); _mm_setcsr(old | 0x8040); _mm_setcsr(old); }",
    "detaching a tensor": "torch::Tensor f(torch::Tensor x) { std::thread u([]{}); u.join(); return x.detach(); }",
    "a namespace of its own": "namespace mine { namespace at { void relu(float) {} } } void g() { mine::at::relu(1.f); }",
    "checks and options": "auto o = torch::TensorOptions().dtype(torch::kFloat32); auto y = torch::empty({2}, o);",
    "execution policies and executors": "void executor(int); void f() { executor(1); my.system(2); }",
}


def candidate(forward: str = "return LIB.f(x.data_ptr())", around: str = "", cpp: str = "") -> str:
    source = f'SOURCE = r"""\n#include <cstdint>\n{cpp}\n"""\n' if cpp else ""
    return (
        "import ctypes, math, os, subprocess\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
        f"{source}LIB = ext = None\n{around}\n\n"
        "class ModelNew(nn.Module):\n"
        "    def __init__(self, rows=4):\n"
        "        super().__init__()\n"
        "        self.rows = rows\n"
        "        self.weight = nn.Parameter(torch.randn(rows, rows) * 0.1)\n"
        "        self.linear = nn.Linear(rows, rows)\n"
        "        self.identity = nn.Identity()\n"
        "        self.packed = torch.sum(torch.relu(self.weight.detach()) @ self.weight.detach())\n\n"
        "    def prepare(self):\n"
        "        self.packed = (self.weight.detach() * 2).t().contiguous()\n\n"
        "    def forward(self, x, alpha=2):\n" + textwrap.indent(forward, " " * 8) + "\n"
    )


@pytest.mark.parametrize("policy", [*Policy])
@pytest.mark.parametrize("source", [HOUSE, LOAD_INLINE], ids=["house style", "load_inline"])
def test_whole_candidates(source: str, policy: Policy) -> None:
    read = read_candidate(source, policy)
    assert read.rejections == ()
    assert read.language is Language.CPP
    assert read.uses_load_inline == ("load_inline" in source)


@pytest.mark.parametrize("name", FORWARDS)
def test_what_forward_may_do(name: str) -> None:
    assert read_candidate(candidate(FORWARDS[name])).rejections == ()


@pytest.mark.parametrize("name", AROUND)
def test_what_may_stand_around_it(name: str) -> None:
    assert read_candidate(candidate(around=AROUND[name])).rejections == ()


@pytest.mark.parametrize("name", CPP)
def test_what_cpp_may_do(name: str) -> None:
    assert read_candidate(candidate(cpp=CPP[name])).rejections == ()


def test_the_reference_problems_are_no_part_of_it() -> None:
    """Set-up may use all of torch: nothing of it runs in a call."""
    read = read_candidate(candidate(), Policy.KERNEL)
    assert read.library_calls == ()
