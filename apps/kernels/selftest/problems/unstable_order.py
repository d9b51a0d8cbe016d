"""The order of many equal values, in which any of them may come first."""

import torch
from torch import nn

R, C = 512, 256


class Model(nn.Module):
    def forward(self, x):
        return torch.argsort(torch.round(x * 4), dim=1)


def get_inputs():
    return [torch.randn(R, C)]


def get_init_inputs():
    return []
