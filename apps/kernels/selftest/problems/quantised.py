"""Rows rounded to multiples of their own largest value by 127."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        s = x.abs().amax(1, keepdim=True) / 127
        return torch.clamp(torch.round(x / s), -128, 127) * s


def get_inputs():
    return [torch.randn(200, 500)]


def get_init_inputs():
    return []
