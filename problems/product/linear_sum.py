"""A linear layer of which only the sum over its features is used, scaled.

The product need not be made: the weights can be summed first, and what is left is one product with a vector.
"""

import torch
from torch import nn

batch_size = 1024
in_features = 1024
out_features = 1024


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int, scale: float):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).sum(dim=1, keepdim=True) * self.scale


def get_inputs():
    return [torch.randn(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features, 0.5]
