"""How a loop walks through memory: loads that step over more than they take, and loads at addresses that were loaded."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from apps.kernels.profile.disassembly import Instruction, Loop
from apps.kernels.profile.instruction_mix import Address, data_width, memory_operand, reads_memory

# A stream that uses less than half of what it passes over wastes more of each cache line than it takes.
_WASTEFUL = 2
_SUFFIX_BYTES = {"b": 1, "w": 2, "l": 4, "q": 8}


@dataclass(frozen=True)
class Access:
    """Loads of one loop: all of them, those with a wasteful or run-time stride, those at addresses that were loaded."""

    strided: int
    indirect: int


@dataclass(frozen=True)
class _Step:
    """How a register moves in one iteration: by a constant, by another register's value, or from memory."""

    constant: int = 0
    by_register: bool = False
    loaded: bool = False


def memory_access(loop: Loop) -> Access:
    """Counts from the listing: registers' steps first, then each load's address against them."""
    steps = _steps(loop)
    strided = indirect = 0
    covered: dict[tuple[str, str, int], int] = defaultdict(int)
    loads: dict[tuple[str, str, int], int] = defaultdict(int)
    for instruction in loop.instructions:
        if not reads_memory(instruction):
            continue
        if "gather" in instruction.mnemonic:
            indirect += 1
            continue
        for address in filter(None, map(memory_operand, instruction.operands)):
            key = (address.base, address.index, address.scale)
            covered[key] += _bytes_loaded(instruction)
            loads[key] += 1
    # Neighbours that the compiler reads through several base registers of one stride are told apart by nothing here;
    # each alone is wasteful, and so are all of them unless they lie side by side, which compilers write as displacements.
    for key, count in loads.items():
        step = _address_step(Address(0, *key), steps)
        if step.loaded:
            indirect += count
        elif step.by_register or abs(step.constant) > _WASTEFUL * covered[key]:
            strided += count
    return Access(strided, indirect)


def _steps(loop: Loop) -> dict[str, _Step]:
    steps: dict[str, _Step] = {}
    for instruction in loop.instructions:
        if not instruction.operands:
            continue
        target = full_register(instruction.operands[-1])
        if target is None:
            continue
        known = steps.get(target, _Step())
        steps[target] = _moved(instruction, target, known, steps)
    return steps


def _moved(instruction: Instruction, target: str, known: _Step, steps: dict[str, _Step]) -> _Step:
    """The register's step after this instruction, which writes it."""
    name, source = instruction.mnemonic, instruction.operands[0]
    if name.startswith(("cmp", "test", "bt")) and not name.startswith("bts"):
        return known
    if name.startswith(("inc", "dec")):
        return _Step(known.constant + (1 if name.startswith("inc") else -1), known.by_register, known.loaded)
    sign = 1 if name.startswith("add") else -1 if name.startswith("sub") else 0
    if sign and source.startswith("$"):
        return _Step(known.constant + sign * int(source[1:], 16), known.by_register, known.loaded)
    if sign and source.startswith("%"):
        return _Step(known.constant, True, known.loaded)
    if name.startswith("lea") and (address := memory_operand(source)):
        step = _address_step(address, steps)
        if address.base == target and not address.index:
            return _Step(known.constant + address.displacement, known.by_register, known.loaded)
        return _Step(step.constant, step.by_register or (address.base == target), step.loaded)
    if any(memory_operand(operand) for operand in instruction.operands[:-1]):
        return _Step(loaded=True)
    if name.startswith(("mov", "cltq", "shl", "sal", "sar", "shr", "and", "imul", "vmov", "vpextr", "cmov")):
        # copies and scalings carry over where a value came from; vector lanes moved to an index were loaded or computed
        origin = full_register(source)
        carried = steps.get(origin, _Step()) if origin and origin != target else known
        from_vector = "mm" in source
        return _Step(carried.constant, carried.by_register, carried.loaded or from_vector)
    return known


def _address_step(address: Address, steps: dict[str, _Step]) -> _Step:
    base = steps.get(full_register(address.base) or "", _Step())
    index = steps.get(full_register(address.index) or "", _Step())
    return _Step(
        base.constant + address.scale * index.constant,
        base.by_register or index.by_register,
        base.loaded or index.loaded,
    )


def full_register(operand: str) -> str | None:
    """The 64-bit name of a general register, so that %eax and %rax are one; None for anything else."""
    found = re.fullmatch(r"%(?:[re]?(ax|bx|cx|dx|si|di|bp|sp)|(r\d+)[dwb]?|([abcd])[lh]|(si|di|bp|sp)l)", operand)
    if found is None:
        return None
    if found[1]:
        return f"%r{found[1]}"
    if found[2]:
        return f"%{found[2]}"
    return f"%r{found[3]}x" if found[3] else f"%r{found[4]}"


def _bytes_loaded(instruction: Instruction) -> int:
    name = instruction.mnemonic
    if "broadcast" in name or "{1to" in ",".join(instruction.operands):
        return 8 if name.endswith(("sd", "pd", "q")) else 4
    narrowed = re.match(r"^v?p?mov[sz]x?([bwd])[wdq]|^movs([bwl])[lq]$|^movz([bw])[lq]$", name)
    width = data_width(instruction)
    if width:
        return max(1, width // 8 // (2 if name.startswith(("vcvtps2pd", "vpmovsx", "vpmovzx", "vcvtph2ps")) else 1))
    if narrowed:
        return {"b": 1, "w": 2, "d": 4, "l": 4}[next(filter(None, narrowed.groups()))]
    wide = next((o for o in instruction.operands if re.match(r"%(r[a-z]{2}|r\d+)$", o)), None)
    return _SUFFIX_BYTES.get(name[-1], 8 if wide else 4)
