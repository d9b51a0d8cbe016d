"""Memory files shared with the judge, mapped once: touching the pages of a new mapping costs more than the work on them."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence


class Mapped:
    """The shared memory files of a channel. A file that the judge has made longer since is mapped anew."""

    def __init__(self, files: Sequence[int]) -> None:
        self._files = files
        self._maps: dict[int, mmap.mmap] = {}

    def __getitem__(self, which: int) -> mmap.mmap:
        """The file's memory as it is now; what was laid over an earlier mapping stays valid."""
        known = self._maps.get(which)
        if known is None or len(known) != os.fstat(self._files[which]).st_size:
            known = self._maps[which] = mmap.mmap(self._files[which], 0)
        return known
