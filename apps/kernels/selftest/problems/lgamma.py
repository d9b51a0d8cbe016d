"""The logarithm of the gamma function: much work for each element."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.lgamma(x)


def get_inputs():
    return [torch.rand(128, 1024) * 4 + 3]


def get_init_inputs():
    return []
