"""What a model said can't be used, in words that tell it what to do instead."""

from __future__ import annotations


class Unusable(ValueError):
    """The message completes "That can't be used: ..."."""
