"""Python's own sum, element by element."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        return torch.tensor([sum(row) for row in x.tolist()])
