"""A product with a diagonal matrix, written as a full one."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, d, b):
        return torch.diag(d) @ b


def get_inputs():
    return [torch.randn(512), torch.randn(512, 512)]


def get_init_inputs():
    return []
