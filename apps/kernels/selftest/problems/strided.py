"""An input that is a transposed view."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) + x


def get_inputs():
    return [torch.randn(1024, 512).t()]


def get_init_inputs():
    return []
