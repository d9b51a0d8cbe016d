"""`inspect PROBLEM.py`: what is known of a problem."""

from __future__ import annotations

import json
from argparse import Namespace

from apps.kernels.cli.exit_codes import BAD_INPUT, GOOD, HostFailed
from apps.kernels.cli.inputs import log, read_settings, read_source
from apps.kernels.cli.tables import scaled, shape, table
from apps.kernels.facts import Graph, Node, ProblemFacts, TensorFact
from apps.kernels.inspect import inspect
from apps.kernels.jail import JailFailed, ZygoteFailed
from apps.kernels.plain import Plain, to_plain
from apps.kernels.problem import BadProblem


def run(options: Namespace) -> int:
    """Print facts and graph; 0, or 2 for a problem that can't be judged."""
    try:
        source, settings = read_source(options.problem), read_settings(options.set)
        facts = inspect(source, settings, observe=log, allow_weak_isolation=options.allow_weak_isolation)
    except BadProblem as fault:
        facts = ProblemFacts(refusal=str(fault))
    except (JailFailed, ZygoteFailed) as fault:
        raise HostFailed(f"This host can't run a problem in a jail: {fault}") from None
    print(json.dumps(to_plain(facts)) if options.json else described(facts))
    return BAD_INPUT if facts.refusal else GOOD


def described(facts: ProblemFacts) -> str:
    """Facts and graph for a terminal."""
    if facts.refusal:
        return f"Can't be judged. {facts.refusal}"
    parts = [facts.docstring] if facts.docstring else []
    parts.append(table([_tensor_row(fact) for fact in (*facts.inputs, *facts.parameters, *facts.outputs)]))
    parts.append(table(_figures(facts)))
    if facts.constants:
        settings = "  ".join(f"{c.name}={c.value!r}" for c in facts.constants)
        parts.append(f"Sizes (--set NAME=VALUE)\n  {settings}")
    if facts.quirks:
        parts.append("Notes\n" + table([(quirk.name, quirk.detail) for quirk in facts.quirks]))
    if facts.graph:
        parts.append("Graph\n" + _graph(facts.graph))
    else:
        parts.append(f"Graph\n  none: {facts.graph_refusal}")
    return "\n\n".join(parts)


def _tensor_row(fact: TensorFact) -> tuple[str, ...]:
    size = shape(fact.shape) if fact.dtype != "scalar" else str(fact.value)
    return fact.kind, fact.target or fact.name, fact.dtype, size, scaled(fact.bytes, "B") if fact.bytes else ""


def _figures(facts: ProblemFacts) -> list[tuple[str, str]]:
    intensity = facts.flops / facts.compulsory_bytes if facts.flops is not None and facts.compulsory_bytes else None
    return [
        ("as written", scaled(facts.flops, "FLOP")),
        ("must move", scaled(facts.compulsory_bytes, "B")),
        ("intensity", f"{intensity:.3g} FLOP/B" if intensity is not None else "–"),
        ("judging needs", scaled(facts.memory_bytes, "B")),
        ("operators", ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in facts.operators.items())),
    ]


def _graph(graph: Graph) -> str:
    rows = [(node.name, "=", f"{node.op}({_arguments(node)})", _results(node)) for node in graph.nodes]
    returned = ", ".join(_written(output) for output in graph.outputs)
    return f"{table(rows)}\n  return {returned}"


def _arguments(node: Node) -> str:
    named = [f"{name}={_written(value)}" for name, value in node.kwargs.items()]
    return ", ".join([*(_written(value) for value in node.args), *named])


def _results(node: Node) -> str:
    return ", ".join(f"{fact.dtype} {shape(fact.shape)}" for fact in node.outputs)


def _written(value: Plain) -> str:
    if isinstance(value, dict):
        if "ref" in value:
            return f"{value['ref']}[{value['index']}]" if "index" in value else str(value["ref"])
        return ", ".join(str(item) for item in value.values())
    if isinstance(value, list):
        return "[" + ", ".join(_written(item) for item in value) + "]"
    return repr(value)
