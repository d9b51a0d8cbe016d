"""A small problem, with what else its file may do: be slow, hang, tell what it sees."""

from __future__ import annotations

PROBLEM = """
import os, time
import torch
from torch import nn

SIZE = 256
{extra}

class Model(nn.Module):
    def forward(self, x):
        return x * 2

def get_inputs():
    return [torch.randn(SIZE)]

def get_init_inputs():
    return []
"""
HANGS = PROBLEM.format(extra="time.sleep(300)")
