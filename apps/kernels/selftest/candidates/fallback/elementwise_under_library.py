"""Torch's element-wise operators, where only its products are allowed."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        return x * torch.sigmoid(x)
