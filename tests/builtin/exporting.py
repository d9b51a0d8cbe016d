"""Graphs of small models, exported here and now, and candidates built from them."""

from __future__ import annotations

import importlib.util
import itertools
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from apps.agents.builtin.cpp.candidate import write_candidate
from apps.agents.builtin.lowering import lower
from apps.agents.builtin.reading import Meaning, read
from apps.agents.builtin.schedule import Schedule
from apps.kernels.facts import Graph, TensorFact
from apps.kernels.inside import graphs
from apps.kernels.inside.graphs import tensor_fact

_numbers = itertools.count()


class Wrapped(torch.nn.Module):
    """A function as a model."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def graph_of(model: torch.nn.Module, inputs: tuple[Any, ...]) -> Graph:
    return graphs.as_graph(graphs.export(model, inputs))


def states_of(model: torch.nn.Module) -> tuple[TensorFact, ...]:
    found = [tensor_fact(name, "parameter", value, name) for name, value in model.named_parameters()]
    found += [tensor_fact(name, "buffer", value, name) for name, value in model.named_buffers()]
    return tuple(found)


def source_of(model: torch.nn.Module, inputs: tuple[Any, ...], schedule: Schedule) -> tuple[Meaning, str]:
    meaning = read(graph_of(model, inputs))
    kernel = lower(meaning, schedule)
    return meaning, write_candidate(
        meaning, kernel, states_of(model), polynomials=schedule.polynomials, wide=schedule.width == 512, title="A test."
    )


def imported(source: str) -> ModuleType:
    name = f"candidate{next(_numbers)}"
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


def built(model: torch.nn.Module, inputs: tuple[Any, ...], schedule: Schedule) -> torch.nn.Module:
    """ModelNew with the model's state, ready to be called."""
    _, source = source_of(model, inputs, schedule)
    made: torch.nn.Module = imported(source).ModelNew()
    made.load_state_dict(model.state_dict())
    return made
