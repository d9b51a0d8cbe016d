"""The table of attacks in docs/judge.md, from what `python -m apps.kernels host --attacks --json` printed.

python bench/attacks.py TITLE=FILE.json [TITLE=FILE.json ...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LETTERS = {
    "a root of its own": "R", "process namespace": "P", "network namespace": "N", "Landlock": "L", "system-call filter": "S",
    "the keeper's no": "K", "another user": "U", "no capabilities, no new privileges": "C", "sealed memory file": "M",
    "started with nothing but its own": "E", "resource limit": "l", "control group": "G", "the keeper looks": "W",
    "size of the tmpfs": "D", "the judge's own bounds": "J", "its whole tree is killed": "T",
}  # fmt: skip


def letters(by: str) -> str:
    """Layers as letters, in their order."""
    for name in sorted(LETTERS, key=len, reverse=True):
        by = by.replace(name, LETTERS[name])
    return by.replace(", ", " ")


def main(words: list[str]) -> None:
    """Print legend and table."""
    titled = [word.partition("=") for word in words]
    found: list[dict[str, Any]] = [json.loads(Path(path).read_text()) for _, _, path in titled]
    print("; ".join(f"{letter} {name}" for name, letter in LETTERS.items()) + ".\n")
    print("| on | attack | " + " | ".join(title for title, _, _ in titled) + " |")
    print("|---|---|" + "---|" * len(titled))
    for rows in zip(*(one["attacks"] for one in found), strict=True):
        cells = [letters(row["by"]) if row["contained"] else f"**not contained**: {row['seen']}" for row in rows]
        print(f"| {rows[0]['area']} | {rows[0]['name'].replace('|', chr(92) + '|')} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(sys.argv[1:])
