"""Hard-swish, a residual connection and a clamp, as they follow each other in mobile networks.

No transcendental function at all: everything between the loads and the store is free, if it is one pass.
"""

import torch
from torch import nn
from torch.nn import functional as F

batch_size = 32
features = 65536


class Model(nn.Module):
    def __init__(self, low: float, high: float):
        super().__init__()
        self.low = low
        self.high = high

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        y = F.hardswish(x) * 0.5 + residual
        return torch.clamp(y, self.low, self.high)


def get_inputs():
    return [torch.randn(batch_size, features) * 3, torch.randn(batch_size, features)]


def get_init_inputs():
    return [-1.0, 2.0]
