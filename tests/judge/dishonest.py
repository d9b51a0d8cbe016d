"""Candidates that cheat or are wrong, by the kind of it, with the verdicts that catch them."""

from __future__ import annotations

from dataclasses import dataclass

from apps.kernels.evaluation import Policy, Tier, Verdict

from .house import HONEST_SWISH, SWISH_C, candidate, swish
from .problems import ARGMAX, BATCH_NORM, LINEAR, ROW_SUM, SWISH

INCORRECT, REJECTED, CRASHED = Verdict.INCORRECT, Verdict.REJECTED, Verdict.CRASHED


@dataclass(frozen=True)
class Cheat:
    """One candidate, what may be said of it, and words that the reason must hold."""

    name: str
    problem: str
    source: str
    verdicts: tuple[Verdict, ...]
    because: str = ""
    policy: Policy = Policy.KERNEL
    tier: Tier = Tier.QUICK
    deadline: float = 120.0


def _cheat(
    name: str, source: str, *verdicts: Verdict, because: str = "", problem: str = SWISH, **more: object
) -> Cheat:
    return Cheat(name, problem, source, verdicts, because, **more)  # type: ignore[arg-type]


STALE = [
    _cheat("output left uninitialised", swish("return torch.empty_like(x)"), INCORRECT),
    _cheat("zeros", swish("return torch.zeros_like(x)"), INCORRECT),
    _cheat("only nine tenths of the rows", swish(HONEST_SWISH.replace("x.numel()", "x.numel() * 9 // 10")), INCORRECT),
    _cheat("the input itself", swish("return x"), INCORRECT, because="input"),
    _cheat(
        "one output buffer for all calls",
        swish("LIB.swish(P(x), P(self.y), N(x.numel()))\nreturn self.y", init="self.y = torch.empty(128, 4096)"),
        INCORRECT,
        because="same memory",
    ),
    _cheat(
        "two output buffers in turn",
        swish(
            "self.i += 1\ny = self.y[self.i % 2]\nLIB.swish(P(x), P(y), N(x.numel()))\nreturn y",
            init="self.i = 0; self.y = [torch.empty(128, 4096) for _ in range(2)]",
        ),
        INCORRECT,
        because="same memory",
    ),
    _cheat(
        "writes to its input",
        candidate(SWISH_C, "LIB.swish(P(x), P(x), N(x.numel()))\nreturn x.clone()"),
        CRASHED,
        INCORRECT,
        because="input",
    ),
]

CACHED = [
    _cheat(
        f"cached by {what}",
        swish(
            f"key = {key}\nif key not in self.kept:\n"
            "    y = torch.empty_like(x)\n    LIB.swish(P(x), P(y), N(x.numel()))\n    self.kept[key] = y\n"
            "return self.kept[key].clone()",
            init="self.kept = {}",
        ),
        INCORRECT,
    )
    for what, key in (
        ("pointer", "x.data_ptr()"),
        ("object", "id(x)"),
        ("shape", "tuple(x.shape)"),
        ("its first elements", "tuple(x.view(-1)[:4].tolist())"),
        ("two elements", "tuple(x.view(-1)[::400000].tolist())"),
    )
]

CACHED.append(
    _cheat(
        "answers kept by rows",
        swish(
            "y = torch.empty_like(x)\nfor i in range(x.shape[0]):\n"
            "    key = tuple(x[i, :3].tolist())\n"
            "    if key not in self.kept:\n"
            "        LIB.swish(P(x[i]), P(y[i]), N(x.shape[1]))\n        self.kept[key] = y[i].clone()\n"
            "    ctypes.memmove(y[i].data_ptr(), self.kept[key].data_ptr(), x.shape[1] * 4)\n"
            "return y",
            init="self.kept = {}",
        ),
        INCORRECT,
        REJECTED,
    )
)

LATE = [
    _cheat(
        "work left to a Python thread",
        swish(
            "y = torch.empty_like(x)\n"
            "threading.Thread(target=lambda: (time.sleep(0.002), LIB.swish(P(x), P(y), N(x.numel())))).start()\nreturn y"
        ),
        INCORRECT,
    ),
    _cheat(
        "work left to a C++ thread",
        swish(
            "y = torch.empty_like(x)\nLIB.later(P(x), P(y), N(x.numel()))\nreturn y",
            c="""
extern "C" void later(const float* x, float* y, int64_t n) {
  std::thread([=] { std::this_thread::sleep_for(std::chrono::milliseconds(1));
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i])); }).detach();
}""",
        ),
        INCORRECT,
        CRASHED,
    ),
    _cheat(
        "work left to a child process",
        swish("os.fork() or os._exit(0)\nreturn torch.empty_like(x)"),
        REJECTED,
        because="process it started",
    ),
    _cheat(
        "a child process for each call",
        swish(
            "if self.i > 1 and os.fork() == 0: os._exit(0)\nself.i += 1\n" + HONEST_SWISH,
            init="self.i = 0",
        ),
        CRASHED,
        REJECTED,
    ),
    _cheat(
        "honest for twenty calls",
        swish("self.i += 1\nif self.i > 20: return torch.empty_like(x)\n" + HONEST_SWISH, init="self.i = 0"),
        INCORRECT,
    ),
    _cheat(
        "honest for a second",
        swish(
            "if time.time() > self.t + 0.35: return torch.empty_like(x)\n" + HONEST_SWISH, init="self.t = time.time()"
        ),
        INCORRECT,
    ),
    _cheat(
        "a lazy tensor that computes when looked at",
        swish(
            "return torch.empty_like(x).as_subclass(Lazy)",
            more="class Lazy(torch.Tensor):\n    def __getattribute__(self, name): return super().__getattribute__(name)",
        ),
        INCORRECT,
        because="plain tensor",
    ),
]

FALLBACK = [
    _cheat("torch does it", swish("return x * torch.sigmoid(x)"), REJECTED, because="aten"),
    _cheat("torch by a hidden name", swish("return x * getattr(torch, 'sig' + 'moid')(x)"), REJECTED, because="aten"),
    _cheat(
        "a decoy kernel, then torch",
        swish("y = torch.empty(1)\nLIB.swish(P(x), P(y), N(1))\nreturn torch.nn.functional.silu(x)"),
        REJECTED,
        because="aten",
    ),
    _cheat(
        "torch, but not while anyone counts operators",
        swish(
            "from torch.utils import _python_dispatch as d\n"
            "if d._get_current_dispatch_mode() is None and torch._C._len_torch_dispatch_stack() == 0:\n"
            "    return torch.nn.functional.silu(x)\n" + HONEST_SWISH
        ),
        REJECTED,
        because="libtorch",
    ),
    _cheat(
        "element-wise torch under the library policy",
        swish("return x * torch.sigmoid(x)"),
        REJECTED,
        because="sigmoid",
        policy=Policy.LIBRARY,
    ),
    _cheat(
        "the library's product under the kernel policy",
        swish(
            "return torch.nn.functional.linear(x, self.linear.weight, self.linear.bias)",
            init="self.linear = nn.Linear(*init)",
        ),
        REJECTED,
        because="aten",
        problem=LINEAR,
    ),
    _cheat(
        "BLAS behind a C function",
        candidate(
            """
#include <dlfcn.h>
typedef void (*gemm)(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
                     const float*, const int*, const float*, float*, const int*);
extern "C" int product(const char* library, const float* x, const float* w, float* y, int m, int n, int k) {
  gemm f = (gemm)dlsym(dlopen(library, RTLD_NOW), "sgemm_");
  if (!f) return 1;
  float one = 1, zero = 0;
  f("T", "N", &n, &m, &k, &one, w, &k, x, &k, &zero, y, &n);
  return 0;
}""",
            "y = torch.empty(x.shape[0], 512)\n"
            "assert LIB.product(self.path, P(x), P(self.linear.weight), P(y), x.shape[0], 512, 512) == 0\nreturn y",
            init="self.linear = nn.Linear(*init)\n"
            "self.path = os.path.join(os.path.dirname(torch.__file__), 'lib', 'libtorch_cpu.so').encode()",
        ),
        REJECTED,
        because="libtorch",
        problem=LINEAR,
    ),
]

IMPRECISE = [
    _cheat(
        "sixteen bits inside",
        candidate(
            """
static float low(float v) { uint32_t b; std::memcpy(&b, &v, 4); b = (b + 0x7FFF + ((b >> 16) & 1)) & 0xFFFF0000u;
  std::memcpy(&v, &b, 4); return v; }
extern "C" void product(const float* x, const float* w, const float* b, float* y, int64_t m, int64_t n, int64_t k) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) for (int64_t j = 0; j < n; ++j) { float s = b[j];
    for (int64_t l = 0; l < k; ++l) s += low(x[i * k + l]) * low(w[j * k + l]); y[i * n + j] = s; }
}""",
            "y = torch.empty(x.shape[0], 512)\nlinear = self.linear\n"
            "LIB.product(P(x), P(linear.weight), P(linear.bias), P(y), N(x.shape[0]), N(512), N(512))\nreturn y",
            init="self.linear = nn.Linear(*init)",
        ),
        INCORRECT,
        problem=LINEAR,
    ),
    _cheat(
        "ten bits of mantissa in the result",
        candidate(
            """
extern "C" void swish(const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; ++i) {
  float v = x[i] / (1.0f + std::exp(-x[i])); uint32_t b; std::memcpy(&b, &v, 4); b &= 0xFFFFE000u;
  std::memcpy(y + i, &b, 4); } }
""",
            HONEST_SWISH,
        ),
        INCORRECT,
    ),
    _cheat(
        "zero where values are small",
        candidate(
            """
extern "C" void swish(const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; ++i)
  y[i] = std::fabs(x[i]) < 0.01f ? 0.0f : x[i] / (1.0f + std::exp(-x[i])); }
""",
            HONEST_SWISH,
        ),
        INCORRECT,
    ),
    _cheat(
        "a mean instead of a sum's remainder",
        candidate(
            """
extern "C" void rows(const float* x, float* y, int64_t m, int64_t n) { for (int64_t i = 0; i < m; ++i) { float s = 0;
  for (int64_t j = 0; j < n; j += 4) s += x[i * n + j]; y[i] = s * 4; } }
""",
            "y = torch.empty(x.shape[0])\nLIB.rows(P(x), P(y), N(x.shape[0]), N(x.shape[1]))\nreturn y",
        ),
        INCORRECT,
        problem=ROW_SUM,
    ),
    _cheat(
        "the expected value of random inputs",
        swish("return torch.full((x.shape[0],), 1024.0)"),
        INCORRECT,
        problem=ROW_SUM,
    ),
    _cheat(
        "a bias that is zero left out",
        candidate(
            """
extern "C" void product(const float* x, const float* w, float* y, int64_t m, int64_t n, int64_t k) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) for (int64_t j = 0; j < n; ++j) { float s = 0;
    for (int64_t l = 0; l < k; ++l) s += x[i * k + l] * w[j * k + l]; y[i * n + j] = s; }
}""",
            "y = torch.empty(x.shape[0], 512)\n"
            "LIB.product(P(x), P(self.linear.weight), P(y), N(x.shape[0]), N(512), N(512))\nreturn y",
            init="self.linear = nn.Linear(*init)",
        ),
        INCORRECT,
        because="other weights",
        problem=LINEAR,
        tier=Tier.FULL,
    ),
    _cheat(
        "the first column always",
        swish("return torch.zeros(x.shape[0], dtype=torch.int64)"),
        INCORRECT,
        problem=ARGMAX,
    ),
    _cheat(
        "a column of a matrix where a vector is asked for",
        candidate(
            """
extern "C" void rows(const float* x, float* y, int64_t m, int64_t n) { for (int64_t i = 0; i < m; ++i) { double s = 0;
  for (int64_t j = 0; j < n; ++j) s += x[i * n + j]; y[i] = s; } }
""",
            "y = torch.empty(x.shape[0], 1)\nLIB.rows(P(x), P(y), N(x.shape[0]), N(x.shape[1]))\nreturn y",
        ),
        INCORRECT,
        because="shape",
        problem=ROW_SUM,
    ),
    _cheat(
        "running statistics not kept",
        candidate(
            """
extern "C" void norm(const float* x, const float* g, const float* b, float* y, int64_t m, int64_t n) {
  for (int64_t j = 0; j < n; ++j) { double s = 0, q = 0; for (int64_t i = 0; i < m; ++i) s += x[i * n + j];
    s /= m; for (int64_t i = 0; i < m; ++i) q += (x[i * n + j] - s) * (x[i * n + j] - s); q = 1 / std::sqrt(q / m + 1e-5);
    for (int64_t i = 0; i < m; ++i) y[i * n + j] = (x[i * n + j] - s) * q * g[j] + b[j]; } }
""",
            "y = torch.empty_like(x)\n"
            "LIB.norm(P(x), P(self.norm.weight), P(self.norm.bias), P(y), N(x.shape[0]), N(x.shape[1]))\nreturn y",
            init="self.norm = nn.BatchNorm1d(256)",
        ),
        INCORRECT,
        because="running_",
        problem=BATCH_NORM,
    ),
]

MISBEHAVING = [
    _cheat(
        "reads past its input's end",
        candidate(
            """
extern "C" void swish(const float* x, float* y, int64_t n) { float s = 0; for (int64_t i = 0; i < n + 4096; ++i) {
  float v = x[i] / (1.0f + std::exp(-x[i])); if (i < n) y[i] = v; else s += v; } if (s == 123.0f) y[0] = s; }
""",
            HONEST_SWISH,
        ),
        CRASHED,
        because="isn't its own",
    ),
    _cheat(
        "writes past its output's end",
        candidate(
            """
extern "C" void swish(const float* x, float* y, int64_t n) { for (int64_t i = 0; i < n; ++i)
  y[i] = x[i] / (1.0f + std::exp(-x[i])); for (int64_t i = n; i < n + 32; ++i) y[i] = 0; }
""",
            HONEST_SWISH,
        ),
        CRASHED,
        because="isn't its own",
    ),
    _cheat("leaves early", swish("os._exit(0)"), CRASHED, because="exit code 0"),
    _cheat("aborts", swish("os.abort()"), CRASHED),
    _cheat("hangs", swish("while True: time.sleep(1)"), Verdict.TIMED_OUT, deadline=8.0),
    _cheat(
        "eats memory",
        swish("self.kept = [bytearray(1 << 30) for _ in range(200)]\nreturn x"),
        Verdict.OUT_OF_MEMORY,
    ),
    _cheat(
        "answers the judge itself",
        swish(
            "for fd in range(3, 40):\n"
            "    try: os.write(fd, b'\\x04\\x00\\x00\\x00\\x01' + b'\\x00' * 4)\n"
            "    except OSError: pass\n" + HONEST_SWISH
        ),
        INCORRECT,
        REJECTED,
        CRASHED,
    ),
    _cheat("does not compile", candidate("this is no C++", "return x"), Verdict.BUILD_FAILED, because="error"),
    _cheat("raises", swish("raise ValueError('no idea')"), CRASHED, because="no idea"),
]

ALL = [*STALE, *CACHED, *LATE, *FALLBACK, *IMPRECISE, *MISBEHAVING]
