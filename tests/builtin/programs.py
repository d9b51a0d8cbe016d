"""Small programs that between them use every kind of index, fold and operation of the built-in coder."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812

from tests.builtin.exporting import Wrapped


@dataclass(frozen=True)
class Program:
    """A function and inputs of odd sizes."""

    name: str
    function: Callable[..., Any]
    inputs: Callable[[], tuple[Any, ...]]

    @property
    def model(self) -> torch.nn.Module:
        return Wrapped(self.function)


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


def unusual(*shape: int) -> torch.Tensor:
    """Normal numbers with NaN, both infinities and both noughts among them."""
    made = torch.randn(shape)
    flat = made.view(-1)
    for i, value in enumerate((math.nan, math.inf, -math.inf, 0.0, -0.0)):
        flat[(i * 37 + 3) % flat.numel()] = value
    return made


def whole(*shape: int) -> torch.Tensor:
    return torch.randint(-50, 50, shape)


def _normalised(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-3)


def _mixed_fold(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean((0, 2), keepdim=True)).abs().sum(1) + x.max()


PROGRAMS = [
    Program(
        "chain of functions",
        lambda x, y: (torch.tanh(x) * torch.sigmoid(y) + torch.exp(-x * x), torch.erf(x) - y),
        lambda: (normal(7, 13, 5), normal(7, 13, 5)),
    ),
    Program("broadcast", lambda x, b, c: (x + b) * c + b, lambda: (normal(3, 17, 29), normal(17, 1), normal(29))),
    Program(
        "transposed and reshaped", lambda x: (x.transpose(1, 2) * 2).reshape(5, -1) + 1, lambda: (normal(5, 7, 9),)
    ),
    Program("strided slices", lambda x: x[:, 1:, ::2] * x[:, :-1, 1::2], lambda: (normal(4, 9, 20),)),
    Program("padded", lambda x: F.pad(x, (1, 2, 0, 3), value=1.5) * 2, lambda: (normal(3, 5, 7),)),
    Program("joined", lambda x, y: torch.cat([x, y * 2, x], 1).relu(), lambda: (normal(3, 5), normal(3, 4))),
    Program("rolled and flipped", lambda x: x.flip(1) + x.roll(3, 1), lambda: (normal(5, 33),)),
    Program("triangles", lambda x: (torch.tril(x) * 2, x.triu(1)), lambda: (normal(19, 19),)),
    Program("repeated", lambda x: x.repeat(2, 3) + torch.arange(21), lambda: (normal(3, 7),)),
    Program("permuted", lambda x: x.permute(2, 0, 1).contiguous() * 2, lambda: (normal(10, 11, 12),)),
    Program(
        "not contiguous", lambda x, y: x * y + x.sum(0, keepdim=True), lambda: (normal(20, 30).t(), normal(30, 20))
    ),
    Program("numbers", lambda x, y: x * y + 1, lambda: (normal(), normal(5, 3))),
    Program("one element", lambda x: x * 2, lambda: (normal(1),)),
    Program("sums over all", lambda x: (x.sum(), x.mean(), (x * x).sum().sqrt()), lambda: (normal(123, 457),)),
    Program("a long sum", lambda x: x.sum(), lambda: (normal(1000, 1003),)),
    Program(
        "sums over some",
        lambda x: (x.sum(0), x.sum(1), x.sum(2), x.sum((0, 2)), x.mean((1, 2))),
        lambda: (normal(6, 35, 47),),
    ),
    Program("sums over two of four", lambda x: x.sum((1, 3)), lambda: (normal(4, 5, 6, 7),)),
    Program("products", lambda x: (x.prod(1), x.prod()), lambda: (normal(9, 7),)),
    Program("extremes with NaN", lambda x: (x.amax(0), x.amin(1), x.amax((0, 1))), lambda: (unusual(33, 70),)),
    Program(
        "indices of extremes",
        lambda x: (x.argmax(0), x.argmin(1), x.argmax(), x.min(1)[1], x.max(0)[0]),
        lambda: (unusual(33, 70),),
    ),
    Program(
        "indices among whole numbers", lambda x: (x.argmax(0), x.argmin(1), x.argmax()), lambda: (whole(33, 70) % 3,)
    ),
    Program(
        "indices where all are infinite",
        lambda x: (x.argmax(1), x.argmin(1), (-x).argmax(0)),
        lambda: (torch.full((5, 40), math.inf),),
    ),
    Program("few long rows", lambda x: (x.sum(1), x.argmin(1), x.amax(1)), lambda: (normal(2, 65536),)),
    Program(
        "soft-max",
        lambda x: (torch.softmax(x, -1), torch.log_softmax(x, 0), torch.logsumexp(x, 1)),
        lambda: (normal(9, 101),),
    ),
    Program(
        "soft-max over infinities",
        lambda x: torch.softmax(x, -1),
        lambda: (torch.cat([torch.full((3, 40), -math.inf), normal(3, 40)]),),
    ),
    Program(
        "layer norm",
        lambda x, w, b: F.layer_norm(x, (31,), w, b),
        lambda: (normal(5, 7, 31) * 3 + 1, normal(31), normal(31)),
    ),
    Program("group norm", lambda x, w, b: F.group_norm(x, 4, w, b), lambda: (normal(2, 8, 5, 7), normal(8), normal(8))),
    Program(
        "batch norm",
        lambda x, m, v: F.batch_norm(x, m, v.abs() + 0.1),
        lambda: (normal(5, 6, 7, 8), normal(6), normal(6)),
    ),
    Program(
        "RMS norm over channels",
        lambda x: x / torch.sqrt((x**2).mean(1, keepdim=True) + 1e-5),
        lambda: (normal(3, 17, 30, 7),),
    ),
    Program("rows normalised", _normalised, lambda: (normal(3, 7001) + 5,)),
    Program("variances", lambda x: (x.var(0), x.std(1), x.var((0, 1), correction=0)), lambda: (normal(21, 50),)),
    Program("fold of a fold", _mixed_fold, lambda: (normal(5, 6, 70),)),
    Program("by its own range", lambda x: (x - x.amin()) / (x.amax() - x.amin()), lambda: (normal(40, 50),)),
    Program("divided by a norm", lambda x: x / torch.norm(x), lambda: (normal(30, 100),)),
    Program(
        "truth values",
        lambda x, y: (x > y, (x > 0) & (y > 0), torch.isnan(x), (x > 0).any(1), (x < 5).all(), (x > 0).sum(1)),
        lambda: (unusual(7, 37), normal(7, 37)),
    ),
    Program(
        "choices",
        lambda x, m: torch.where(m > 0, x, -x).masked_fill(m > 0.5, 3.0),
        lambda: (normal(5, 33), normal(5, 33)),
    ),
    Program(
        "whole numbers",
        lambda a, b: (a + b, a * b - 3, a // 3, a % 5, a.float() / b.abs().add(1), (a > b).sum()),
        lambda: (whole(6, 19), whole(6, 19)),
    ),
    Program("bytes", lambda x: (x.float() / 255, x + 1), lambda: (torch.randint(0, 255, (9, 40), dtype=torch.uint8),)),
    Program(
        "float64",
        lambda x: (torch.exp(x).sum(1), torch.tanh(x) + torch.log1p(x * x), x.var(1)),
        lambda: (torch.randn(7, 23, dtype=torch.float64),),
    ),
    Program(
        "bfloat16",
        lambda x: (x * 2 + 1, torch.softmax(x.float(), 1).to(torch.bfloat16)),
        lambda: (normal(7, 33).bfloat16(),),
    ),
    Program(
        "losses",
        lambda p, t: (
            F.mse_loss(p, t),
            F.smooth_l1_loss(p, t),
            F.huber_loss(p, t),
            F.kl_div(torch.log_softmax(p, 1), torch.softmax(t, 1), reduction="batchmean"),
        ),
        lambda: (normal(33, 77), normal(33, 77)),
    ),
    Program("cross entropy", lambda p, t: F.cross_entropy(p, t), lambda: (normal(33, 17), torch.randint(0, 17, (33,)))),
    Program(
        "triplets",
        lambda a, p, n: F.triplet_margin_loss(a, p, n),
        lambda: (normal(33, 64), normal(33, 64), normal(33, 64)),
    ),
    Program("cosines", lambda a, b: F.cosine_similarity(a, b), lambda: (normal(33, 65), normal(33, 65))),
    Program(
        "activations",
        lambda x: (
            F.gelu(x),
            F.gelu(x, approximate="tanh"),
            F.mish(x),
            F.silu(x),
            F.elu(x),
            F.selu(x),
            F.hardswish(x),
            F.softplus(x),
            F.leaky_relu(x),
            F.hardsigmoid(x),
            F.logsigmoid(x),
        ),
        lambda: (normal(9, 41) * 3,),
    ),
    Program(
        "functions of unusual numbers",
        lambda x: (
            torch.tanh(x),
            torch.sigmoid(x),
            torch.exp(x),
            torch.log(x),
            F.relu(x),
            x.clamp(-1, 1),
            x.clamp(min=0),
            torch.erf(x),
            torch.floor(x),
            torch.abs(x),
            torch.round(x),
            torch.sqrt(x),
            torch.expm1(x),
            torch.log1p(x),
            torch.sign(x),
            F.gelu(x),
            F.gelu(x, approximate="tanh"),
        ),
        lambda: (unusual(9, 41) * 3,),
    ),
    Program(
        "functions far out",
        lambda x: (torch.exp(x), torch.tanh(x), torch.sigmoid(x), torch.log(x.abs()), torch.expm1(x)),
        lambda: (torch.linspace(-110, 110, 4001),),
    ),
    Program(
        "library functions",
        lambda x: (torch.sin(x), torch.atan(x), torch.pow(x.abs(), 1.7), torch.pow(x, 3), torch.rsqrt(x.abs())),
        lambda: (normal(5, 33) * 10,),
    ),
    Program(
        "running sums",
        lambda x: (x.cumsum(1), x.cumsum(0) * 2, x.flip(1).cumsum(1).flip(1), x.sigmoid().cumsum(1)[:, 3:]),
        lambda: (normal(13, 77),),
    ),
    Program("running products", lambda x: (x.cumprod(2), x.cumprod(1)), lambda: (normal(3, 5, 41) * 0.2 + 1,)),
    Program("running extremes", lambda x: (x.cummax(1)[0], x.cummin(0)[0]), lambda: (unusual(9, 33),)),
    Program("running sums of whole numbers", lambda a: (a.cumsum(1), (a > 0).cumsum(0)), lambda: (whole(6, 29),)),
    Program(
        "running sums of other things",
        lambda x: (
            torch.softmax(x, 1).cumsum(1),
            x.cumsum(1).cumsum(1),
            x.cumsum(1).amax(1),
            x.cumsum(0) + x.cumsum(1),
        ),
        lambda: (normal(7, 35),),
    ),
    Program(
        "exclusive running sum",
        lambda x: torch.cumsum(torch.cat([torch.zeros_like(x[:, :1]), x], 1), 1),
        lambda: (normal(7, 40),),
    ),
    Program(
        "largest of windows",
        lambda x: (
            F.max_pool2d(x, 3, 2, 1),
            F.max_pool2d(x, 2),
            F.max_pool2d(x, 3, 1, 1, dilation=1),
            F.max_pool2d(x, (2, 3), (1, 3), ceil_mode=True),
            F.max_pool2d(x, 3, 2, 1, dilation=2),
        ),
        lambda: (normal(2, 3, 21, 37),),
    ),
    Program(
        "places of the largest of windows",
        lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
        lambda: (normal(2, 3, 17, 30),),
    ),
    Program("windows with NaN", lambda x: (F.max_pool2d(x, 3, 1, 1), F.relu(x)), lambda: (unusual(2, 3, 11, 19),)),
    Program(
        "means of windows",
        lambda x: (
            F.avg_pool2d(x, 3, 1, 1),
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.avg_pool2d(x, 2, ceil_mode=True),
            F.avg_pool2d(x, (3, 2), divisor_override=7),
            F.avg_pool2d(x.relu(), 4),
        ),
        lambda: (normal(2, 3, 21, 37),),
    ),
    Program(
        "windows of one and three dimensions",
        lambda x, y: (F.max_pool1d(x, 4, 2), F.avg_pool1d(x, 4, 2, 1), F.max_pool3d(y, 2), F.avg_pool3d(y, 3, 2, 1)),
        lambda: (normal(3, 5, 61), normal(2, 3, 9, 11, 20)),
    ),
    Program(
        "windows that divide",
        lambda x: (
            F.adaptive_avg_pool2d(x, 4),
            F.adaptive_avg_pool2d(x, (5, 7)),
            F.adaptive_avg_pool2d(x, 1),
            F.adaptive_max_pool2d(x, (5, 7)),
        ),
        lambda: (normal(2, 3, 16, 24),),
    ),
    Program(
        "losses of other kinds",
        lambda p, t: (
            F.l1_loss(p, t),
            F.binary_cross_entropy_with_logits(p, torch.sigmoid(t)),
            F.cosine_embedding_loss(p, t, torch.ones(33)),
            F.soft_margin_loss(p, t.sign()),
            F.poisson_nll_loss(p, t.abs()),
            torch.mean(torch.clamp(1 - p * t, min=0)),
        ),
        lambda: (normal(33, 77), normal(33, 77)),
    ),
    Program(
        "indices over outer dimensions",
        lambda x: (x.argmax(1), x.argmin(0), x.amin(1), x.max(1)[0], x.argmax(2)),
        lambda: (unusual(5, 33, 70),),
    ),
]


def random_steps(x: torch.Tensor, chance: random.Random) -> torch.Tensor:
    """A random program: views, arithmetic and folds that keep the result small."""
    for _ in range(chance.randint(2, 6)):
        kind = chance.choice(["unary", "self", "view", "fold", "norm", "slice", "pad", "cat", "scan", "window"])
        dim = chance.randrange(x.dim()) if x.dim() else 0
        if kind == "unary":
            x = getattr(torch, chance.choice(["tanh", "sigmoid", "abs", "exp", "relu", "neg"]))(x.clamp(-3, 3))
        elif kind == "self":
            x = x * chance.choice([0.5, -2.0]) + x
        elif kind == "view" and x.dim() > 1:
            x = x.transpose(0, x.dim() - 1).reshape(-1, x.shape[0])
        elif kind == "fold" and x.dim() > 1:
            x = getattr(torch, chance.choice(["sum", "mean", "amax", "amin"]))(x, dim=dim)
        elif kind == "norm" and x.dim():
            x = torch.softmax(x, dim) if chance.random() < 0.5 else x - x.mean(dim, keepdim=True)
        elif kind == "slice" and x.dim() and x.shape[dim] > 2:
            x = x.narrow(dim, 1, x.shape[dim] - 1).flip(dim)
        elif kind == "pad" and x.dim():
            x = F.pad(x, (1, 2), value=0.25)
        elif kind == "cat" and x.dim():
            x = torch.cat([x, x * 2], dim)
        elif kind == "scan" and x.dim():
            x = x.flip(dim).cumsum(dim) * 0.5 if chance.random() < 0.5 else x.cumsum(dim) * 0.5
        elif kind == "window" and x.dim() and x.shape[-1] > 2:
            pool = chance.choice([F.max_pool1d, F.avg_pool1d])
            x = pool(x.reshape(1, -1, x.shape[-1]), 3, 2, 1).reshape(*x.shape[:-1], -1)
    return x
