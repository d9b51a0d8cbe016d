"""Raises."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        raise ValueError("no idea")
