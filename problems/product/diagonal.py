"""A diagonal matrix times a matrix.

Written as a product it takes a multiplication for each row, column and shared index; all terms but one of each sum are
nought, and what is left scales each row.
"""

import torch
from torch import nn

rows = 1024
columns = 2048


class Model(nn.Module):
    def forward(self, diagonal: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        return torch.diag(diagonal) @ matrix


def get_inputs():
    return [torch.randn(rows), torch.randn(rows, columns)]


def get_init_inputs():
    return []
