"""Torch's load_inline."""

from torch import nn


from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <cmath>
torch::Tensor swish(torch::Tensor x) {
  TORCH_CHECK(x.is_contiguous(), "x must be contiguous");
  auto y = torch::empty_like(x);
  const float* in = x.data_ptr<float>();
  float* out = y.data_ptr<float>();
  int64_t n = x.numel();
#pragma omp parallel for
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] / (1.0f + std::exp(-in[i]));
  return y;
}
"""
EXTENSION = load_inline(
    name="swish_extension",
    cpp_sources=SOURCE,
    functions=["swish"],
    extra_cflags=["-O3", "-march=native", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        return EXTENSION.swish(x)
