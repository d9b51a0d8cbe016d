"""Torch's compiler writes the kernel."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()
        self.compiled = torch.compile(lambda x: x * torch.sigmoid(x))

    def forward(self, x):
        return self.compiled(x)
