"""A swish that is no less than a number, which is made from the input."""

import torch
from torch import nn
from torch.nn import functional

R, C = 1024, 2048


class Model(nn.Module):
    def forward(self, x):
        return torch.maximum(functional.silu(x), x.new_full((1,), -0.2))


def get_inputs():
    return [torch.randn(R, C)]


def get_init_inputs():
    return []
