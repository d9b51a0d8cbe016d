"""max(x, 0) · 2 + 1 in float16."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2 + 1


def get_inputs():
    return [torch.randn(256, 2048).half()]


def get_init_inputs():
    return []
