"""Which loops of a kernel's own source GCC or clang vectorised, and why not the others, from what they log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?P<kind>\w+): (?P<text>.*)$")
_MOST_REMARKS = 40
_CALLED = r"(?:\S+ = )?(?!__builtin_GOMP|__asm)(?:__builtin_)?([\w:~]+) \("
# GCC's words for why, the most telling first, and what they mean to somebody reading the source.
_GCC_REASONS = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"not vectorized: relevant stmt not supported: " + _CALLED, "calls {}, which has no vector form here"),
        (r"statement clobbers memory: " + _CALLED, "calls {}, which has no vector form here"),
        (r"statement clobbers memory: __asm", "inline assembly in the loop"),
        (r"possible alias", "pointers may overlap; __restrict says that they do not"),
        (r"not vectorized: control flow in loop", "a branch that can't become a mask (control flow in the loop)"),
        (r"step unknown|not vectorized: not suitable for strided load", "the stride is not known when compiling"),
        (r"not vectorized: number of iterations cannot be computed", "how often it runs is not known at its start"),
        (
            r"reduc(?:tion)? op not supported|unsupported reduction",
            "a sum's order is kept; an omp simd reduction frees it",
        ),
        (r"vectorization not profitable|vector version will never", "it would not pay by the compiler's account"),
        (r"not vectorized: (?!no vectype|loop contains function calls)(.*)", "{}"),
        (r"not vectorized: (loop contains function calls or data references that cannot be analyzed)", "{}"),
        (r"not vectorized: no vectype for stmt: (.*)", "no vector form of {}"),
    )
)


@dataclass(frozen=True)
class Remark:
    """One thing the compiler said of a line of the kernel's own; `missed` where a loop was not vectorised."""

    line: int
    missed: bool
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {'missed: ' if self.missed else ''}{self.text}"


def read_gcc(text: str, source: str) -> tuple[Remark, ...]:
    """GCC's vectoriser log: which loops of the source's own lines were vectorised, which not and why.

    GCC tries one vector size after the other and ends with "couldn't vectorize loop"; the reason that counts is that of
    the first, widest size. A reason may lie in another file, such as the header that defines std::tanh.
    """
    remarks: dict[tuple[int, str], Remark] = {}
    reasons: list[tuple[int, str]] = []
    settled = False
    for raw in text.splitlines():
        found = _LINE.match(raw)
        if found is None:
            continue
        line, message = int(found["line"]), found["text"].strip()
        own = Path(found["file"]).name == source
        if message.startswith("couldn't vectorize loop"):
            if own and reasons:
                _, reason = min(reasons)
                remarks[line, reason] = Remark(line, True, f"not vectorised: {reason}")
            reasons, settled = [], False
        elif found["kind"] == "optimized" and message.startswith("loop vectorized"):
            if own:
                remarks[line, message] = Remark(line, False, message)
            reasons, settled = [], False
        elif "Analysis" in message and "failed with vector mode" in message:
            settled = settled or bool(reasons)
        elif found["kind"] == "missed" and not settled and (why := _gcc_reason(message)):
            reasons.append(why)
    return _in_order(remarks.values())


def read_clang(text: str, source: str) -> tuple[Remark, ...]:
    """Clang's remarks about loops of the source's own lines."""
    remarks: dict[tuple[int, str], Remark] = {}
    for raw in text.splitlines():
        found = _LINE.match(raw)
        if found is None or found["kind"] != "remark" or Path(found["file"]).name != source:
            continue
        line, message = int(found["line"]), re.sub(r" \[-R.*\]$", "", found["text"]).strip()
        if message.startswith("vectorized loop"):
            remarks[line, message] = Remark(line, False, message)
        elif message.startswith("loop not vectorized:"):
            remarks[line, message] = Remark(line, True, message.replace("loop not vectorized", "not vectorised"))
    return _in_order(remarks.values())


def _gcc_reason(message: str) -> tuple[int, str] | None:
    """How telling a reason is (0 the most) and what it means, None for a message that gives none."""
    for rank, (pattern, meaning) in enumerate(_GCC_REASONS):
        if found := pattern.match(message):
            return rank, meaning.format(*found.groups())
    return None


def _in_order(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    return tuple(sorted(remarks, key=lambda remark: (remark.line, remark.missed, remark.text))[:_MOST_REMARKS])
