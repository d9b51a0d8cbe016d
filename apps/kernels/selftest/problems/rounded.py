"""The nearest whole number, of two the even one."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.round(x)


def get_inputs():
    return [torch.randn(512, 1024) * 4]


def get_init_inputs():
    return []
