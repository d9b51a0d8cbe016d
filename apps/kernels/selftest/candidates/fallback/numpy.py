"""NumPy does it."""

import numpy

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        array = x.numpy()
        return torch.from_numpy(array / (1 + numpy.exp(-array)))
