"""Sleeps for ever while it is imported."""

import time

from torch import nn


time.sleep(3600)


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        return x
