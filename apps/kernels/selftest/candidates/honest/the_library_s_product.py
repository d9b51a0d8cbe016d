"""The library's product, under the policy that allows it."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()
        self.linear = nn.Linear(*init)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.linear.weight, self.linear.bias)
