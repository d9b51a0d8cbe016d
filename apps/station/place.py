"""Where a station keeps things: reports not yet sent, and temporary files that its next start clears away."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_NOTE = "temporary"


def default_state(name: str) -> Path:
    """$XDG_STATE_HOME/pragma/NAME, by default under ~/.local/state."""
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "pragma" / name


def fresh_temporary(state: Path) -> str:
    """A new private directory for temporary files; what the last station of this place left behind goes.

    Its path is short and every part of it can be entered by the users that jailed processes become.
    """
    state.mkdir(parents=True, exist_ok=True)
    note = state / _NOTE
    if note.exists():
        left = Path(note.read_text().strip())
        if left.name.startswith("pragma-station-"):
            shutil.rmtree(left, ignore_errors=True)
    place = tempfile.mkdtemp(prefix="pragma-station-")
    Path(place).chmod(0o711)
    note.write_text(place)
    return place
