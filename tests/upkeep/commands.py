"""The commands as somebody at a terminal gives them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from django.core.management import call_command


def backup(**options: Any) -> Path:
    """The file that was made."""
    out = io.StringIO()
    call_command("backup", stdout=out, stderr=io.StringIO(), **options)
    return Path(out.getvalue().strip())


def restore(file: Path, **options: Any) -> str:
    """What was said."""
    out = io.StringIO()
    call_command("restore", str(file), stdout=out, **options)
    return out.getvalue()
