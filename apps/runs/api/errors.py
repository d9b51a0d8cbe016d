"""What errors look like and how views ask: the same in every room (apps/people/api)."""

from __future__ import annotations

from apps.people.api.asking import ask
from apps.people.api.errors import answer

__all__ = ["answer", "ask"]
