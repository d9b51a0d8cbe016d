"""Small problems that the judge's own tests are about."""

from __future__ import annotations

SWISH = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return x * torch.sigmoid(x)
def get_inputs(): return [torch.randn(128, 4096)]
def get_init_inputs(): return []
"""

LINEAR = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        nn.init.zeros_(self.linear.bias)
    def forward(self, x): return self.linear(x)
def get_inputs(): return [torch.randn(256, 512)]
def get_init_inputs(): return [512, 512]
"""

ROW_SUM = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return x.sum(1)
def get_inputs(): return [torch.rand(512, 2048)]
def get_init_inputs(): return []
"""

ARGMAX = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return x.argmax(1)
def get_inputs(): return [torch.randn(512, 1000)]
def get_init_inputs(): return []
"""

TWO_OUTPUTS = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x, scale: float, flip: bool):
        y = x * scale
        return (-y if flip else y), x.abs().amax(1)
def get_inputs(): return [torch.randn(256, 1024), 1.5, True]
def get_init_inputs(): return []
"""

BATCH_NORM = """
import torch
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(256)
    def forward(self, x): return self.norm(x)
def get_inputs(): return [torch.randn(512, 256)]
def get_init_inputs(): return []
"""

DIAGONAL = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, d, b): return torch.diag(d) @ b
def get_inputs(): return [torch.randn(512), torch.randn(512, 512)]
def get_init_inputs(): return []
"""
