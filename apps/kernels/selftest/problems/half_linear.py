"""A linear layer in float16."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 256).half()

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(256, 512).half()]


def get_init_inputs():
    return []
