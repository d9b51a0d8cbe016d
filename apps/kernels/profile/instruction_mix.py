"""What the instructions of a loop are: vector widths, arithmetic, memory, calls. Counts are exact for the listing."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from apps.kernels.profile.disassembly import Instruction, Loop

_FMA = re.compile(r"^v?fn?m(add|sub|addsub|subadd)\d")
_DIVIDES = re.compile(r"^(v?(div|sqrt)[ps][sdh]|i?div[bwlq]?)$")
_STREAMS = re.compile(r"^v?movnt(ps|pd|dq|i|il|iq)$")
_MOVES = re.compile(r"^v?(mov|broadcast|lddqu|pbroadcast|insert|extract|perm|pinsr|pextr|unpck|punpck|shuf|pshuf)")
_VECTOR_MATH = re.compile(r"^_ZGV[a-z]\w+")  # the vector function names of the x86-64 vector ABI
_MEMORY = re.compile(r"^(?:%[a-z]s:)?(-?(?:0x)?[0-9a-f]*)\((%\w+)?(?:,(%\w+))?(?:,(\d))?\)")
_READS_LAST = ("cmp", "test", "ucomis", "comis", "vucomis", "vcomis", "bt", "ptest", "vptest", "vtestp", "kortest")
_WRITES_ONLY = (
    "mov",
    "vmov",
    "set",
    "vextract",
    "vpextr",
    "pextr",
    "vcvtps2ph",
    "vcompress",
    "vpcompress",
    "vpmov",
    "stmxcsr",
)
_NO_ACCESS = ("lea", "nop", "prefetch", "call", "jmp", "endbr")


@dataclass(frozen=True)
class Address:
    """A memory operand: displacement(base, index, scale)."""

    displacement: int
    base: str
    index: str
    scale: int


def instruction_mix(loop: Loop) -> dict[str, int]:
    """Counts by kind, every kind always there; documented in docs/profiling.md."""
    mix = dict.fromkeys(
        ("instructions", "vector_512", "vector_256", "vector_128", "scalar", "fma", "div_sqrt", "gather", "loads",
         "stores", "nt_stores", "calls", "vector_math_calls", "spills"), 0,
    )  # fmt: skip
    for instruction in loop.instructions:
        mix["instructions"] += 1
        width = data_width(instruction)
        if width:
            mix[f"vector_{width}" if width >= 128 else "scalar"] += 1
        mix["fma"] += bool(_FMA.match(instruction.mnemonic))
        mix["div_sqrt"] += divides(instruction)
        mix["gather"] += "gather" in instruction.mnemonic
        mix["loads"] += reads_memory(instruction)
        mix["stores"] += writes_memory(instruction)
        mix["nt_stores"] += bool(_STREAMS.match(instruction.mnemonic))
        mix["spills"] += _on_stack(instruction)
        if instruction.mnemonic.startswith("call"):
            mix["vector_math_calls" if _VECTOR_MATH.match(instruction.target) else "calls"] += 1
    return mix


def vector_bits(loop: Loop) -> int:
    """Bits that most of the loop's arithmetic works on at once, of its moves where it has none.

    64 stands for one element at a time: scalar floating point, or integers in general registers.
    """
    arithmetic: Counter[int] = Counter()
    moves: Counter[int] = Counter()
    for instruction in loop.instructions:
        if width := data_width(instruction):
            (moves if _MOVES.match(instruction.mnemonic) else arithmetic)[max(width, 64)] += 1
    chosen = arithmetic or moves
    return max(chosen, key=lambda width: (chosen[width], width)) if chosen else 64


def data_width(instruction: Instruction) -> int:
    """512, 256 or 128 for a vector instruction, 32 or 64 for a scalar floating-point one, 0 for any other."""
    text = ",".join(instruction.operands)
    if "%zmm" in text:
        return 512
    if "%ymm" in text:
        return 256
    if "%xmm" not in text:
        return 0
    return element_bits(instruction.mnemonic) or 128


def element_bits(mnemonic: str) -> int:
    """Bits of a scalar floating-point mnemonic's element, 0 for a vector one. Masks like `vpackssdw` are not scalar."""
    if mnemonic.startswith(("vp", "p", "vbroadcast", "vinsert", "vextract")):
        return 0
    found = re.search(r"(ss|sd)(2si[lq]?)?$|cvtt?si2(ss|sd)", mnemonic)
    return 0 if found is None else 64 if "sd" in found[0] else 32


def divides(instruction: Instruction) -> bool:
    """A division or square root, floating or integer."""
    return bool(_DIVIDES.match(instruction.mnemonic))


def memory_operand(operand: str) -> Address | None:
    """The address an operand names, None for registers and immediates."""
    found = _MEMORY.match(operand)
    if found is None:
        return None
    displacement = int(found[1], 16) if found[1] not in ("", "-") else 0
    return Address(displacement, found[2] or "", found[3] or "", int(found[4] or 1))


def reads_memory(instruction: Instruction) -> bool:
    """Whether it loads; read-modify-write counts as load and store."""
    if not instruction.operands or instruction.mnemonic.startswith(_NO_ACCESS):
        return False
    *sources, last = instruction.operands
    if any(memory_operand(source) for source in sources):
        return True
    return memory_operand(last) is not None and not _writes_only(instruction)


def writes_memory(instruction: Instruction) -> bool:
    """Whether it stores."""
    if not instruction.operands or instruction.mnemonic.startswith((*_NO_ACCESS, *_READS_LAST)):
        return False
    single_read = len(instruction.operands) == 1 and instruction.mnemonic.startswith(
        ("push", "div", "idiv", "mul", "imul")
    )
    return memory_operand(instruction.operands[-1]) is not None and not single_read


def _writes_only(instruction: Instruction) -> bool:
    return instruction.mnemonic.startswith(_WRITES_ONLY) or bool(_STREAMS.match(instruction.mnemonic))


def _on_stack(instruction: Instruction) -> bool:
    """Touches the frame: by the stack pointer, or by the frame pointer at a negative displacement without index."""
    if instruction.mnemonic.startswith(("lea", "call", "jmp", "nop")):
        return False
    for operand in instruction.operands:
        address = memory_operand(operand)
        if address and (
            address.base == "%rsp" or (address.base == "%rbp" and address.displacement < 0 and not address.index)
        ):
            return True
    return False
