"""A list among the inputs, a dictionary of outputs."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, pair):
        a, b = pair
        return {"sum": a + b, "product": a * b}


def get_inputs():
    return [[torch.randn(256, 1024), torch.randn(256, 1024)]]


def get_init_inputs():
    return []
