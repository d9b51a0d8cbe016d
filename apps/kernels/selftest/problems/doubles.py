"""A norm in float64."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.linalg.norm(x)


def get_inputs():
    return [torch.randn(64, 3000, dtype=torch.float64)]


def get_init_inputs():
    return []
