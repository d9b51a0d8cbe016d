"""A folder for an installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def var(tmp_path: Path, settings: Any) -> Path:
    """Where this installation writes."""
    settings.VAR, settings.RUN = tmp_path, tmp_path / "run"
    return tmp_path
