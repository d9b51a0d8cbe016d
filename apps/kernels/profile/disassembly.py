"""Instructions and innermost loops of a shared object, from objdump (x86-64, AT&T syntax)."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.host.toolchains import find_tool
from apps.kernels.profile.tool import ToolFailed, run_tool

_FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
_INSTRUCTION = re.compile(r"^\s+([0-9a-f]+):\s+(\S.*)$")
_PREFIXES = ("lock ", "rep ", "repz ", "repnz ", "bnd ", "notrack ", "data16 ", "cs ", "{evex} ", "{vex} ")
_MOST_SECONDS = 20
# What the linker and compiler put into every object; its loops are nobody's kernel.
_NOT_KERNELS = ("deregister_tm_clones", "register_tm_clones", "__do_global_dtors_aux", "frame_dummy", "_init", "_fini")


class NoDisassembly(RuntimeError):
    """The machine code can't be read here; the message says why."""


@dataclass(frozen=True)
class Instruction:
    """One instruction: where it lies, its mnemonic, its operands in AT&T order (destination last)."""

    address: int
    mnemonic: str
    operands: tuple[str, ...]
    target: str = ""

    @property
    def text(self) -> str:
        """As objdump writes it, with the jump's or call's target by name."""
        named = f" <{self.target}>" if self.target else ""
        return f"{self.mnemonic} {','.join(self.operands)}{named}".rstrip()


@dataclass(frozen=True)
class Loop:
    """An innermost loop: the function it lies in and its instructions, the backward jump last."""

    symbol: str
    instructions: tuple[Instruction, ...]

    @property
    def start(self) -> int:
        return self.instructions[0].address

    @property
    def end(self) -> int:
        return self.instructions[-1].address

    @property
    def assembly(self) -> str:
        return "\n".join(f"{i.address:x}: {i.text}" for i in self.instructions)


def disassemble(path: Path) -> dict[str, tuple[Instruction, ...]]:
    """Instructions by function, in order of address. Raises `NoDisassembly`.

    objdump reads a file that generated code may have written, so it is locked in, with limits on time and memory.
    """
    if platform.machine() not in ("x86_64", "AMD64"):
        raise NoDisassembly(f"machine code is read for x86-64 only, this is {platform.machine()}")
    tool = find_tool("objdump")
    if tool is None:
        raise NoDisassembly("objdump is not installed (package binutils)")
    command = [tool, "-d", "-M", "att", "--no-show-raw-insn", "-j", ".text", str(path)]
    try:
        said = run_tool(command, seconds=_MOST_SECONDS, reading=[path])
    except ToolFailed as problem:
        raise NoDisassembly(f"{path.name}: {problem}") from None
    return read_objdump(said.output.splitlines())


def read_objdump(lines: Iterable[str]) -> dict[str, tuple[Instruction, ...]]:
    """Instructions by function from objdump's listing."""
    functions: dict[str, list[Instruction]] = {}
    current: list[Instruction] = []
    for line in lines:
        if named := _FUNCTION.match(line):
            current = functions.setdefault(named[1], [])
        elif found := _INSTRUCTION.match(line):
            current.append(_instruction(int(found[1], 16), found[2]))
    return {name: tuple(instructions) for name, instructions in functions.items()}


def innermost_loops(functions: dict[str, tuple[Instruction, ...]]) -> tuple[Loop, ...]:
    """Every loop that holds no other: the span of a backward jump within a function."""
    loops = []
    for symbol, instructions in functions.items():
        if symbol in _NOT_KERNELS:
            continue
        index = {instruction.address: i for i, instruction in enumerate(instructions)}
        spans = set()
        for i, instruction in enumerate(instructions):
            start = index.get(_jump_target(instruction), i + 1)
            if start <= i:
                spans.add((start, i))
        # Two back edges to one head are one loop: the shorter span lies in the longer, which then isn't innermost.
        inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
        loops += [Loop(symbol, instructions[start : end + 1]) for start, end in sorted(inner)]
    return tuple(loops)


def split_operands(text: str) -> tuple[str, ...]:
    """Operands at the commas that lie outside parentheses."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return (*parts, current.strip()) if current.strip() else tuple(parts)


def _instruction(address: int, text: str) -> Instruction:
    text = text.split("#")[0].strip()
    while text.startswith(_PREFIXES):
        text = text.split(" ", 1)[1].strip()
    mnemonic, _, rest = text.partition(" ")
    target = ""
    if named := re.search(r"<([^>]+)>", rest):
        target, rest = named[1], rest[: named.start()]
    return Instruction(address, mnemonic, split_operands(rest), target)


def _jump_target(instruction: Instruction) -> int:
    if not instruction.mnemonic.startswith("j") or not instruction.operands:
        return -1
    word = instruction.operands[0].split()[0]
    return int(word, 16) if re.fullmatch(r"[0-9a-f]+", word) else -1
