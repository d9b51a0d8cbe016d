"""One self-contained .py of a kernel: a header that says what it is, the candidate's own text, and a check behind it.

Everything that people or models wrote (titles, notes, names) goes into comments of one line or literals that Python's
own `repr` made, so that no text can become code. The candidate stands in it byte for byte; what is added is only read
when the file is run, not when it is imported.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from pprint import pformat

from apps.kernels.evaluation import Language
from apps.kernels.problem import read_problem
from apps.reviews.export.contents import Contents

_TAIL = Path(__file__).with_name("tail.py.txt")
# Above the judge's own tolerance, which is that of its trials; these are other inputs on another machine.
_TOLERANCE_SLACK = 4.0
_TOLERANCE_UNKNOWN = 1e-4


@dataclass(frozen=True)
class Standalone:
    """The file: its name and its text."""

    name: str
    text: str


def standalone(contents: Contents) -> Standalone:
    """The kernel as one file that runs with torch and a compiler alone."""
    source = contents.source.removeprefix("\ufeff")
    source = source if source.endswith("\n") else source + "\n"
    text = "\n".join([*_header(contents), ""]) + source + "\n\n" + _literals(contents) + "\n\n" + _tail()
    _check(source, text)
    return Standalone(f"{contents.stem}.py", text)


def one_line(text: object) -> str:
    """A text as part of a comment: on one line, nothing unprintable in it."""
    words = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else "?" for letter in words)


def _header(contents: Contents) -> list[str]:
    lines = [
        f"{one_line(contents.title)}: a kernel in {contents.language}, accepted by {one_line(contents.accepted_by)} "
        f"on {contents.accepted_at:%Y-%m-%d}.",
        f"{contents.speedup} over eager on {one_line(contents.device_model)} ({one_line(contents.device)}).",
        f"Content SHA-256 {contents.digest} (of the text between this header and the line 'Added by PRAGMA').",
        f"From {one_line(contents.address)}",
        f"Needs {needs(contents.source)}; nothing of PRAGMA.",
    ]
    return [f"# {line}" for line in lines]


def needs(source: str) -> str:
    """What the file needs where it is run: Torch's own `load_inline` calls ninja."""
    return "torch, a compiler and ninja" if "load_inline" in source else "torch and a compiler"


def _literals(contents: Contents) -> str:
    told = {
        "problem": contents.title,
        "digest": contents.digest,
        "device": "cpu" if contents.language == Language.CPP.value else "cuda",
        "host": one_line(contents.device),
        "model": one_line(contents.device_model),
        "speedup": contents.speedup,
        "tolerance": (contents.tolerance or _TOLERANCE_UNKNOWN) * _TOLERANCE_SLACK,
        "environment": contents.environment,
    }
    reference = read_problem(contents.problem_source, contents.overrides).source
    lines = ["_PRAGMA_REFERENCE = ("]
    lines += [f"    {line!a}," for line in reference.splitlines(keepends=True)]
    return f"_PRAGMA = {pformat(told, width=110, sort_dicts=False)}\n" + "\n".join([*lines, ")"]) + "\n"


@cache
def _tail() -> str:
    return _TAIL.read_text()


def _check(source: str, text: str) -> None:
    """The candidate's statements are all there, first and unchanged; what follows is ours."""
    whole, own = ast.parse(text).body, ast.parse(source).body
    if [ast.dump(node) for node in whole[: len(own)]] != [ast.dump(node) for node in own] or len(whole) != len(own) + 4:
        raise AssertionError("The exported file would not be the kernel that was accepted.")
