"""Sources with their syntax coloured: Python, and the C++ or CUDA that a candidate carries in its strings."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.safestring import SafeString, mark_safe
from pygments.formatters import HtmlFormatter
from pygments.lexers import CppLexer, PythonLexer
from pygments.token import Token, _TokenType

_KERNEL = re.compile(r'#\s*include|extern\s+"C"|__global__')
_REMARK = re.compile(r":(\d+):\d+:")


@dataclass(frozen=True)
class CodeLine:
    """One line: its number, its coloured text, and what the compiler said of it."""

    number: int
    html: SafeString
    remarks: tuple[str, ...] = ()


def code_lines(source: str, remarks: tuple[str, ...] = ()) -> tuple[CodeLine, ...]:
    """The lines of a candidate or problem; `remarks` with a line of the kernel's text stand beside that line."""
    said = _remarks_by_line(source, remarks)
    return tuple(
        CodeLine(number, html, tuple(said.get(number, ()))) for number, html in enumerate(_coloured(source), 1)
    )


@functools.lru_cache(maxsize=256)
def _coloured(source: str) -> tuple[SafeString, ...]:
    out: list[str] = []

    class _Sink:
        def write(self, text: str) -> None:
            out.append(text)

    HtmlFormatter(nowrap=True).format(_tokens(source), _Sink())
    lines = "".join(out).split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return tuple(mark_safe(line) for line in lines)  # noqa: S308 - Pygments escapes what it colours


def _tokens(source: str) -> Iterator[tuple[_TokenType, str]]:
    """Python's tokens, with strings that hold a kernel read again as C++."""
    pending: list[str] = []
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    for kind, text in lexer.get_tokens(source):
        if kind in Token.Literal.String and kind not in Token.Literal.String.Affix:
            pending.append(text)
            continue
        yield from _string("".join(pending))
        pending.clear()
        yield kind, text
    yield from _string("".join(pending))


def _string(text: str) -> Iterator[tuple[_TokenType, str]]:
    if not text:
        return
    if not _KERNEL.search(text):
        yield Token.Literal.String, text
        return
    quote = re.match(r"'''|\"\"\"|'|\"", text)
    mark = quote.group() if quote else ""
    yield Token.Literal.String, mark
    yield from CppLexer(stripnl=False, ensurenl=False).get_tokens(text[len(mark) : len(text) - len(mark)])
    yield Token.Literal.String, mark


def _remarks_by_line(source: str, remarks: tuple[str, ...]) -> dict[int, list[str]]:
    """Remarks by the source's own line: the compiler counts from the opening quotes of the kernel's text."""
    opening = next(
        (m for m in re.finditer(r'"""|\'\'\'', source) if _KERNEL.search(source[m.end() : m.end() + 400])), None
    )
    if opening is None:
        return {}
    before = source.count("\n", 0, opening.start())
    said: dict[int, list[str]] = {}
    for remark in remarks:
        if found := _REMARK.search(remark):
            said.setdefault(before + int(found.group(1)), []).append(remark[found.end() :].strip())
    return said
