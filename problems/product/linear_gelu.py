"""A linear layer followed by GELU: the product is the library's, the activation can join the pass that writes it."""

import torch
from torch import nn
from torch.nn import functional as F

batch_size = 512
in_features = 512
out_features = 2048


class Model(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(batch_size, in_features)]


def get_init_inputs():
    return [in_features, out_features]
