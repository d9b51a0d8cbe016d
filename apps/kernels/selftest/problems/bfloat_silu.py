"""x · sigmoid(x) in bfloat16."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


def get_inputs():
    return [torch.randn(512, 2048).bfloat16() * 2]


def get_init_inputs():
    return []
