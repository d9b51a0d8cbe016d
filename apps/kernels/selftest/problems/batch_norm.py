"""Batch norm in training: running statistics are updated by each call."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(256)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(512, 256)]


def get_init_inputs():
    return []
