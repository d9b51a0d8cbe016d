"""Describe a problem, jailed: its sizes before anything is allocated, its facts from one run, its graph."""

from __future__ import annotations

import dataclasses
import inspect
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from apps.kernels.facts import ProblemFacts, Quirk, TensorFact
from apps.kernels.inside import graphs, reach
from apps.kernels.inside.examining import examine
from apps.kernels.inside.oracle import Oracle, Refused
from apps.kernels.inside.sizing import NotSized, Sizes, sizes_of
from apps.kernels.jail.channel import Channel
from apps.kernels.plain import Plain, from_plain, to_plain
from apps.kernels.strength import Strength

SEED = 20_511_063
LONGEST_MESSAGE = 1200  # characters of a problem's own error that are passed on
Say = Callable[[str], None]


def main(channel: Channel, payload: Plain) -> None:
    """Answer with {"say": LINE} any number of times, then {"facts": ...}.

    `payload`: source, threads, memory_bytes (what judging may take), smaller (a list of {"overrides", "source"} in the
    order in which they should be offered where the problem is too large).
    """
    torch.set_num_threads(int(payload["threads"]))

    def say(line: str) -> None:
        channel.send({"say": line})

    examined: list[Plain] = []
    try:
        facts = describe(channel, payload, say, examined.append)
    except Refused as refusal:
        facts = ProblemFacts(refusal=_trimmed(str(refusal)))
    except Exception as problem:
        facts = ProblemFacts(refusal=_trimmed(f"The reference raises {_words(problem)}.{_remedy(problem)}"))
    channel.send({"facts": to_plain(facts), "strength": examined[0] if examined else None})


def describe(channel: Channel, payload: Plain, say: Say, keep: Callable[[Plain], None]) -> ProblemFacts:
    """Everything there is to know of a problem; `keep` gets its strength. Raises `Refused`, or what the problem raises."""
    say("sizes, on tensors without memory")
    sizes = _sizes(payload)
    say("one run")
    oracle = Oracle(channel, {**payload, "seed": SEED, "largest_inputs": payload["memory_bytes"]})
    found = oracle.open()
    inputs = tuple(oracle.module.get_inputs())
    outputs = tuple(_fact(f"output{i}" if i else "output", "output", s) for i, s in enumerate(found["outputs"]))
    base = ProblemFacts(
        inputs=_inputs(oracle, found),
        init_inputs=_init_inputs(oracle.init),
        parameters=_state(oracle.model),
        outputs=outputs,
        flops=sizes.flops if sizes else None,
        memory_bytes=sizes.judging_bytes if sizes else None,
        operators=sizes.operators if sizes else {str(k): int(v) for k, v in found["operators"].items()},
        quirks=_quirks(found),
    )
    if payload.get("examine_seconds") and sizes is not None and sizes.examining_bytes > int(payload["memory_bytes"]):
        why = "testing the problem itself needs more memory than there is room for here; smaller sizes are tested whole"
        base = dataclasses.replace(base, quirks=(*base.quirks, Quirk("partly tested", why)))
    elif payload.get("examine_seconds"):
        say("testing the problem itself: wrong answers and lower precision against its checks")
        base = dataclasses.replace(
            base, quirks=base.quirks + _examined(oracle, float(payload["examine_seconds"]), keep)
        )
    say("graph")
    return _with_graph(base, oracle.model, inputs)


def _examined(oracle: Oracle, seconds: float, keep: Callable[[Plain], None]) -> tuple[Quirk, ...]:
    """What a person should know of the problem's checks. Raises `Refused` where nothing can be judged by them."""
    try:
        plain = examine(oracle, seconds)
    except Exception as problem:
        return (Quirk("partly tested", f"testing the problem itself failed: {_trimmed(_words(problem))}"),)
    keep(plain)
    strength = from_plain(Strength, plain)
    if strength.refusal:
        raise Refused(strength.refusal)
    return strength.notes()


def _with_graph(base: ProblemFacts, model: torch.nn.Module, inputs: tuple[Any, ...]) -> ProblemFacts:
    output_bytes = sum(fact.bytes for fact in base.outputs)
    try:
        program = graphs.export(model, inputs)
        compulsory = reach.compulsory_bytes(program, output_bytes)
        graph = graphs.as_graph(program)
    except graphs.NoGraph as why:
        everything = output_bytes + sum(fact.bytes for fact in (*base.inputs, *base.parameters))
        return dataclasses.replace(base, graph_refusal=str(why), compulsory_bytes=everything)
    return dataclasses.replace(base, graph=graph, compulsory_bytes=compulsory)


# --- sizes ------------------------------------------------------------------------------------------------------------


def _sizes(payload: Plain) -> Sizes | None:
    """Sizes, or None where they can't be had without running. Raises `Refused` with what would make it fit."""
    room = int(payload["memory_bytes"])
    try:
        sizes = sizes_of(payload["source"])
    except NotSized as problem:
        if problem.input_bytes > room:
            raise Refused(_too_large(problem.input_bytes, 0, room, _first_that_fits(payload))) from None
        return None
    if sizes.judging_bytes > room:
        raise Refused(_too_large(sizes.input_bytes, sizes.judging_bytes, room, _first_that_fits(payload)))
    return sizes


def _first_that_fits(payload: Plain) -> dict[str, Plain] | None:
    for smaller in payload["smaller"]:
        try:
            if sizes_of(smaller["source"]).judging_bytes <= int(payload["memory_bytes"]):
                overrides: dict[str, Plain] = smaller["overrides"]
                return overrides
        except NotSized:
            continue
    return None


def _too_large(inputs: int, judging: int, room: int, fitting: dict[str, Plain] | None) -> str:
    needs = f", judging it needs {size(judging)}" if judging else ""
    words = f"Too large for this host: its inputs take {size(inputs)}{needs}; there is room for {size(room)}."
    if not fitting:
        return words + " Choose smaller sizes."
    settings = " ".join(f"{name}={value}" for name, value in fitting.items())
    return f"{words} It would fit with {settings}."


def size(count: int) -> str:
    """Bytes with a decimal unit: 200 GB, 33.6 MB."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor:
            return f"{count / factor:,.0f} {unit}" if count >= 100 * factor else f"{count / factor:.3g} {unit}"
    return f"{count} bytes"


def _words(problem: BaseException) -> str:
    """An error as the problem raised it, with the last of its own lines that led there."""
    own = [frame for frame in traceback.extract_tb(problem.__traceback__) if Path(frame.filename).name == "problem.py"]
    where = f" (line {own[-1].lineno}: {own[-1].line})" if own else ""
    return f"{type(problem).__name__}: {problem}".strip().rstrip(".:") + where


def _remedy(problem: BaseException) -> str:
    """What to do about the errors that a first problem makes most often, as a sentence; empty for any other."""
    said = str(problem)
    if isinstance(problem, ModuleNotFoundError) and problem.name:
        return f" {problem.name} is not installed where problems run: a problem needs torch alone."
    if isinstance(problem, AssertionError | RuntimeError) and re.search(r"CUDA enabled|NVIDIA driver|CUDA GPUs", said):
        return " Make tensors on the CPU, without .cuda() and device='cuda': the host decides where a problem runs."
    if isinstance(problem, TypeError) and re.match(r"Model\.__init__\(\) (missing|takes|got an)", said):
        return " get_init_inputs() returns what Model is made with."
    if isinstance(problem, TypeError) and re.match(r"Model\.forward\(\) (missing|takes|got an)", said):
        return " get_inputs() returns what forward takes."
    return ""


# --- facts ------------------------------------------------------------------------------------------------------------


def _inputs(oracle: Oracle, found: dict[str, Any]) -> tuple[TensorFact, ...]:
    items = found["inputs"].get("list", [])
    names = _argument_names(oracle.model, len(items))
    facts = []
    for name, item in zip(names, items, strict=True):
        if "t" in item:
            facts.append(_fact(name, "input", found["specs"][item["t"]]))
        elif "v" in item and not isinstance(item["v"], dict):
            facts.append(TensorFact(name, "input", "scalar", value=item["v"]))
        else:
            facts.append(TensorFact(name, "input", "nested"))
    return tuple(facts)


def _argument_names(model: torch.nn.Module, count: int) -> list[str]:
    """Names of forward's first arguments; numbered where it takes them by *."""
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        parameters = ()  # type: ignore[assignment]
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [named[i] if i < len(named) else f"input{i}" for i in range(count)]


def _fact(name: str, kind: str, spec: Plain) -> TensorFact:
    return TensorFact(
        name, kind, spec["dtype"], shape=tuple(spec["shape"]), strides=tuple(spec["stride"]), bytes=int(spec["bytes"])
    )


def _state(model: torch.nn.Module) -> tuple[TensorFact, ...]:
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    return tuple(
        graphs.tensor_fact(name, "parameter" if name in parameters else "buffer", tensor, target=name)
        for name, tensor in model.state_dict(keep_vars=True).items()
    )


def _init_inputs(init: Any) -> tuple[Plain, ...]:
    items = init.items() if isinstance(init, dict) else init
    return tuple(_plain_or_words(item) for item in items)


def _plain_or_words(value: Any) -> Plain:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain_or_words(item) for item in value]
    return repr(value)[:200]


def _quirks(found: dict[str, Any]) -> tuple[Quirk, ...]:
    quirks = []
    if any(found.get("views", ())):
        quirks.append(
            Quirk("returns a view", "an output shares its input's memory; a candidate must return new storage")
        )
    if found.get("updated"):
        names = ", ".join(found["updated"])
        quirks.append(Quirk("updates buffers", f"forward changes {names}; a candidate must leave them the same"))
    if not found.get("double"):
        quirks.append(Quirk("no float64", "the reference doesn't run in float64: answers are compared with float32's"))
    return tuple(quirks)


def _trimmed(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + " ..."
