"""A product of two upper triangular matrices, as KernelBench has it."""

import torch
from torch import nn

N = 256


class Model(nn.Module):
    """Matrix multiplication for upper triangular matrices (KernelBench level 1, 14)."""

    def __init__(self):
        super().__init__()

    def forward(self, a, b):
        return torch.triu(torch.matmul(a, b))


def get_inputs():
    a = torch.triu(torch.rand(N, N))
    b = torch.triu(torch.rand(N, N))
    return [a, b]


def get_init_inputs():
    return []
