"""Asks for 160 GiB."""

from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        self.kept = [bytearray(1 << 33) for _ in range(20)]
        return x
