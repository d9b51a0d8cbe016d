"""Index of the smallest element over an axis that is not the last.

Eager walks each column with a stride; a kernel that keeps a row of running minima walks memory in order instead.
"""

import torch
from torch import nn

batch_size = 16
channels = 256
length = 1024


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmin(x, dim=1)


def get_inputs():
    return [torch.randn(batch_size, channels, length)]


def get_init_inputs():
    return []
