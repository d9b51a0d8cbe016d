"""Rows of a bfloat16 table."""

import torch
from torch import nn

V, D, N = 4096, 512, 4096


class Model(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.table = nn.Embedding(v, d, dtype=torch.bfloat16)

    def forward(self, index):
        return self.table(index)


def get_inputs():
    return [torch.randint(0, V, (N,))]


def get_init_inputs():
    return [V, D]
