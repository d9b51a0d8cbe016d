"""Honest candidates in the styles people write them in; none may be refused."""

from __future__ import annotations

from dataclasses import dataclass

from apps.kernels.evaluation import Policy

from .house import HONEST_SWISH, candidate, swish
from .problems import ARGMAX, BATCH_NORM, DIAGONAL, LINEAR, ROW_SUM, SWISH, TWO_OUTPUTS


@dataclass(frozen=True)
class Honest:
    """One candidate that keeps the contract."""

    name: str
    problem: str
    source: str
    policy: Policy = Policy.KERNEL


PRODUCT_C = """
extern "C" void product(const float* x, const float* w, const float* b, float* y, int64_t m, int64_t n, int64_t k) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) for (int64_t j = 0; j < n; ++j) { float s = 0;
#pragma omp simd reduction(+:s)
    for (int64_t l = 0; l < k; ++l) s += x[i * k + l] * w[j * k + l]; y[i * n + j] = s + b[j]; } }
"""
PACKED_C = """
extern "C" void pack(const float* w, float* t, int64_t n, int64_t k) {
  for (int64_t j = 0; j < n; ++j) for (int64_t l = 0; l < k; ++l) t[l * n + j] = w[j * k + l]; }
extern "C" void product(const float* x, const float* t, const float* b, float* y, int64_t m, int64_t n, int64_t k) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) { float* r = y + i * n; std::memcpy(r, b, n * 4);
    for (int64_t l = 0; l < k; ++l) { float v = x[i * k + l]; for (int64_t j = 0; j < n; ++j) r[j] += v * t[l * n + j]; } } }
"""
NORM_C = """
extern "C" void norm(const float* x, const float* g, const float* b, float* rm, float* rv, int64_t* count, float* y,
                     int64_t m, int64_t n) {
  *count += 1;
#pragma omp parallel for
  for (int64_t j = 0; j < n; ++j) { double s = 0, q = 0; for (int64_t i = 0; i < m; ++i) s += x[i * n + j];
    s /= m; for (int64_t i = 0; i < m; ++i) q += (x[i * n + j] - s) * (x[i * n + j] - s); q /= m;
    rm[j] = 0.9f * rm[j] + 0.1f * s; rv[j] = 0.9f * rv[j] + 0.1f * q * m / (m - 1);
    double d = 1 / std::sqrt(q + 1e-5);
    for (int64_t i = 0; i < m; ++i) y[i * n + j] = (x[i * n + j] - s) * d * g[j] + b[j]; } }
"""

ALL = [
    Honest("house style", SWISH, swish(HONEST_SWISH)),
    Honest("prints in forward", SWISH, swish("print('x' * 200)\n" + HONEST_SWISH)),
    Honest(
        "scratch kept between calls",
        SWISH,
        swish(
            "LIB.swish(P(x), P(self.scratch), N(x.numel()))\ny = torch.empty_like(x)\n"
            "ctypes.memmove(y.data_ptr(), self.scratch.data_ptr(), y.numel() * 4)\nreturn y",
            init="self.scratch = torch.empty(128, 4096)",
        ),
    ),
    Honest(
        "threads of its own",
        SWISH,
        swish(
            "y = torch.empty_like(x)\nLIB.halves(P(x), P(y), N(x.numel()))\nreturn y",
            c="""
extern "C" void halves(const float* x, float* y, int64_t n) { std::vector<std::thread> all;
  for (int t = 0; t < 2; ++t) all.emplace_back([=] { for (int64_t i = t * n / 2; i < (t + 1) * n / 2; ++i)
    y[i] = x[i] / (1.0f + std::exp(-x[i])); });
  for (auto& one : all) one.join(); }""",
        ),
    ),
    Honest(
        "OpenMP tasks",
        SWISH,
        swish(
            "y = torch.empty_like(x)\nLIB.tasks(P(x), P(y), N(x.numel()))\nreturn y",
            c="""
extern "C" void tasks(const float* x, float* y, int64_t n) {
#pragma omp parallel
#pragma omp single
  for (int64_t a = 0; a < n; a += 65536) {
#pragma omp task
    for (int64_t i = a; i < std::min(n, a + 65536); ++i) y[i] = x[i] / (1.0f + std::exp(-x[i])); } }""",
        ),
    ),
    Honest(
        "a transposed view of new storage",
        SWISH,
        swish(
            "y = torch.empty(x.shape[1], x.shape[0])\nLIB.across(P(x), P(y), N(x.shape[0]), N(x.shape[1]))\nreturn y.t()",
            c="""
extern "C" void across(const float* x, float* y, int64_t m, int64_t n) {
#pragma omp parallel for
  for (int64_t j = 0; j < n; ++j) for (int64_t i = 0; i < m; ++i) {
    float v = x[i * n + j]; y[j * m + i] = v / (1.0f + std::exp(-v)); } }""",
        ),
    ),
    Honest(
        "parameters by the reference's names",
        LINEAR,
        candidate(
            PRODUCT_C,
            "y = torch.empty(x.shape[0], 512)\n"
            "LIB.product(P(x), P(self.linear.weight), P(self.linear.bias), P(y), N(x.shape[0]), N(512), N(512))\nreturn y",
            init="self.linear = nn.Linear(*init)",
        ),
    ),
    Honest(
        "parameters by other names, of equal values",
        LINEAR,
        candidate(
            PRODUCT_C,
            "y = torch.empty(x.shape[0], 512)\n"
            "LIB.product(P(x), P(self.w), P(self.b), P(y), N(x.shape[0]), N(512), N(512))\nreturn y",
            init="made = nn.Linear(*init)\nself.w = nn.Parameter(made.weight.detach())\n"
            "self.b = nn.Parameter(torch.zeros(512))",
        ),
    ),
    Honest(
        "weights packed in prepare()",
        LINEAR,
        candidate(
            PACKED_C,
            "y = torch.empty(x.shape[0], 512)\n"
            "LIB.product(P(x), P(self.packed), P(self.linear.bias), P(y), N(x.shape[0]), N(512), N(512))\nreturn y",
            init="self.linear = nn.Linear(*init)",
            methods="def prepare(self):\n    self.packed = torch.empty(512, 512)\n"
            "    LIB.pack(P(self.linear.weight), P(self.packed), N(512), N(512))",
        ),
    ),
    Honest(
        "the library's product under its policy",
        LINEAR,
        swish(
            "return torch.nn.functional.linear(x, self.linear.weight, self.linear.bias)",
            init="self.linear = nn.Linear(*init)",
        ),
        Policy.LIBRARY,
    ),
    Honest(
        "rows summed in float, many accumulators",
        ROW_SUM,
        candidate(
            """
extern "C" void rows(const float* x, float* y, int64_t m, int64_t n) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) { float s = 0;
#pragma omp simd reduction(+:s)
    for (int64_t j = 0; j < n; ++j) s += x[i * n + j]; y[i] = s; } }""",
            "y = torch.empty(x.shape[0])\nLIB.rows(P(x), P(y), N(x.shape[0]), N(x.shape[1]))\nreturn y",
        ),
    ),
    Honest(
        "int64 output",
        ARGMAX,
        candidate(
            """
extern "C" void rows(const float* x, int64_t* y, int64_t m, int64_t n) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) { int64_t b = 0; for (int64_t j = 1; j < n; ++j) if (x[i * n + j] > x[i * n + b]) b = j;
    y[i] = b; } }""",
            "y = torch.empty(x.shape[0], dtype=torch.int64)\n"
            "LIB.rows(P(x), P(y), N(x.shape[0]), N(x.shape[1]))\nreturn y",
        ),
    ),
    Honest(
        "two outputs, scalars among the inputs",
        TWO_OUTPUTS,
        candidate(
            """
extern "C" void both(const float* x, float* y, float* z, float f, int64_t m, int64_t n) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) { float t = 0; for (int64_t j = 0; j < n; ++j) { float v = x[i * n + j];
    y[i * n + j] = v * f; t = std::fabs(v) > t ? std::fabs(v) : t; } z[i] = t; } }""",
            "y, z = torch.empty_like(x), torch.empty(x.shape[0])\n"
            "factor = ctypes.c_float(-scale if flip else scale)\n"
            "LIB.both(P(x), P(y), P(z), factor, N(x.shape[0]), N(x.shape[1]))\nreturn y, z",
            arguments="x, scale, flip",
        ),
    ),
    Honest(
        "running statistics kept",
        BATCH_NORM,
        candidate(
            NORM_C,
            "y, n = torch.empty_like(x), self.norm\n"
            "LIB.norm(P(x), P(n.weight), P(n.bias), P(n.running_mean), P(n.running_var), P(n.num_batches_tracked), P(y),"
            " N(x.shape[0]), N(x.shape[1]))\nreturn y",
            init="self.norm = nn.BatchNorm1d(256)",
        ),
    ),
    Honest(
        "a shortcut by algebra",
        DIAGONAL,
        candidate(
            """
extern "C" void scale(const float* d, const float* b, float* y, int64_t m, int64_t n) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) for (int64_t j = 0; j < n; ++j) y[i * n + j] = d[i] * b[i * n + j]; }""",
            "y = torch.empty_like(b)\nLIB.scale(P(d), P(b), P(y), N(b.shape[0]), N(b.shape[1]))\nreturn y",
            arguments="d, b",
        ),
    ),
]
