"""A product of one row with bfloat16 weights."""

import torch
from torch import nn

K, M = 4096, 4096


class Model(nn.Module):
    def __init__(self, k, m):
        super().__init__()
        self.linear = nn.Linear(k, m, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(1, K, dtype=torch.bfloat16)]


def get_init_inputs():
    return [K, M]
