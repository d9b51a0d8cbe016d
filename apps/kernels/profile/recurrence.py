"""The longest chain of dependent floating-point work that an iteration hands to the next one.

Latencies are those of current x86-64 cores (Agner Fog's instruction tables, Zen 4 and Ice Lake agree within a cycle or
two): 4 cycles for add, multiply and multiply-add, 11 to 18 for division and square root, 1 to 3 for the rest. The
throughput beside it assumes two vector units, two loads and one store a cycle, and four instructions decoded.
"""

from __future__ import annotations

import re

from apps.kernels.profile.disassembly import Instruction, Loop
from apps.kernels.profile.instruction_mix import data_width, divides, reads_memory, writes_memory

_REGISTER = re.compile(r"%[xyz]mm(\d+)")
_ARITHMETIC = re.compile(r"^v?(fn?m|add|sub|mul|max|min|cvt|round|rndscale|scalef|dp)")
_OVERWRITES = re.compile(r"^v?(mov|broadcast|pbroadcast|lddqu)")
_VECTOR_UNITS, _LOADS, _STORES, _DECODED = 2, 2, 1, 4


def recurrence_cycles(loop: Loop) -> float:
    """Cycles from a vector register's value at the loop's head to the same register at its end, the longest of them."""
    # paths[r][s]: the longest latency from s at the head of the iteration to r now; absent where r doesn't depend on s
    paths: dict[str, dict[str, float]] = {}
    for instruction in loop.instructions:
        target, sources = _dataflow(instruction)
        if target is None:
            continue
        latency = _latency(instruction)
        reached: dict[str, float] = {}
        for source in sources:
            for head, cycles in paths.get(source, {source: 0.0}).items():
                reached[head] = max(reached.get(head, 0.0), cycles + latency)
        paths[target] = reached
    return max((heads.get(register, 0.0) for register, heads in paths.items()), default=0.0)


def throughput_cycles(loop: Loop) -> float:
    """Cycles an iteration takes at least if nothing waits for anything."""
    vector = loads = stores = division = 0
    for instruction in loop.instructions:
        vector += bool(data_width(instruction)) and not _OVERWRITES.match(instruction.mnemonic)
        loads += reads_memory(instruction)
        stores += writes_memory(instruction)
        division += divides(instruction)
    bounds = (vector / _VECTOR_UNITS, loads / _LOADS, stores / _STORES, len(loop.instructions) / _DECODED, 5 * division)
    return max(1.0, *bounds)


def _dataflow(instruction: Instruction) -> tuple[str | None, set[str]]:
    """The vector register that is written and those read; a two-operand or fused form reads its target too."""
    if not instruction.operands or not data_width(instruction):
        return None, set()
    target = _REGISTER.match(instruction.operands[-1])
    if target is None:
        return None, set()
    name = instruction.mnemonic
    sources = {found for operand in instruction.operands[:-1] for found in _REGISTER.findall(operand)}
    merges = "{%k" in instruction.operands[-1] and "{z}" not in instruction.operands[-1]
    if re.match(r"^v?p?xor", name) and instruction.operands[0] == instruction.operands[1]:
        return target[1], set()  # the idiom for zero waits for nothing
    legacy = not name.startswith("v") and not _OVERWRITES.match(name)
    if re.match(r"^v?fn?m(add|sub)", name) or merges or legacy or name.startswith("vpternlog"):
        sources.add(target[1])
    return target[1], sources


def _latency(instruction: Instruction) -> float:
    if divides(instruction):
        return 13.0
    if _OVERWRITES.match(instruction.mnemonic):
        return 0.0
    return 4.0 if _ARITHMETIC.match(instruction.mnemonic) else 1.0
