"""A recurrence of a thousand steps whose gates forget."""

import torch
from torch import nn

B, T, D = 16, 1024, 256


class Model(nn.Module):
    def forward(self, x, gate):
        a = torch.sigmoid(gate)
        h = torch.zeros(x.shape[0], x.shape[2])
        for t in range(x.shape[1]):
            h = a[:, t] * h + x[:, t]
        return h


def get_inputs():
    return [torch.randn(B, T, D), torch.randn(B, T, D)]


def get_init_inputs():
    return []
