"""What people hand to the command line: files, and constants to set."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from apps.kernels.cli.exit_codes import BadInput
from apps.kernels.evaluation import Progress
from apps.kernels.literals import literal_value
from apps.kernels.problem import Value


def read_source(path: str) -> str:
    """A file's text, or standard input's for `-`. Raises `BadInput`."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as fault:
        raise BadInput(f"{path} is not UTF-8 text (byte {fault.start}).") from None
    except OSError as fault:
        raise BadInput(f"Can't read {path}: {fault.strerror or fault}.") from None


def read_settings(settings: list[str]) -> dict[str, Value]:
    """`NAME=VALUE` as overrides; what is no Python literal is a text. Raises `BadInput`."""
    overrides: dict[str, Value] = {}
    for setting in settings:
        name, sign, text = setting.partition("=")
        name = name.strip()
        if not sign or not name.isidentifier():
            raise BadInput(f"--set takes NAME=VALUE, not {setting!r}.")
        overrides[name] = read_value(text.strip())
    return overrides


def read_value(text: str) -> Value:
    """The literal that `text` is (`4096`, `2**20`, `1e-5`, `True`), else the text itself."""
    try:
        value = literal_value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        value = None
    return text if value is None else value


def log(progress: Progress) -> None:
    """One line of news on standard error."""
    share = "" if progress.fraction is None else f" {progress.fraction:4.0%}"
    print(f"{progress.stage}:{share} {progress.message}", file=sys.stderr, flush=True)
