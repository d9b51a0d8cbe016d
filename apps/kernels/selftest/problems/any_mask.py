"""A softmax under a mask of booleans."""

import torch
from torch import nn

R, C = 1024, 2048


class Model(nn.Module):
    def forward(self, x, mask):
        return torch.softmax(x.masked_fill(~mask, -1e9), -1)


def get_inputs():
    return [torch.randn(R, C), torch.ones(R, C, dtype=torch.bool)]


def get_init_inputs():
    return []
