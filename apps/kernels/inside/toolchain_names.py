"""Where the compilers' wrappers keep what they keep, inside a jail's directory; read from both sides."""

from __future__ import annotations

DIRECTORY = ".toolchain"
RECORD = "commands.jsonl"
