"""Making a module of foreign source, inside the jail."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType


def load_module(name: str, source: str) -> ModuleType:
    """Write the source into the jail's own directory and import it from there, so that tracebacks name its lines."""
    path = Path(os.environ["HOME"]) / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def explain(problem: BaseException) -> str:
    """The error with the lines of foreign code that led to it, and none of the judge's own."""
    frames = traceback.extract_tb(problem.__traceback__)
    foreign = [f for f in frames if f.filename.startswith(os.environ["HOME"] + "/")]
    where = [f"  {Path(f.filename).name}:{f.lineno} in {f.name}: {f.line or ''}".rstrip() for f in foreign[-4:]]
    words = f"{type(problem).__name__}: {problem}"
    return "\n".join([words[:12000], *where])
