"""How a meaning is computed: everything that changes no value (beyond rounding) and may change the time."""

from __future__ import annotations

from dataclasses import dataclass, replace

from apps.kernels.plain import Plain, from_plain, to_plain


@dataclass(frozen=True)
class Schedule:
    """One plan for all loops of a kernel.

    width          bits of the vectors written down; 0 leaves vectors to the compiler
    polynomials    exp, log, tanh, erf.. in line instead of calls of the mathematics library
    accumulators   independent accumulators of a fold along the vector axis
    tile           bytes along the contiguous axis that a thread keeps at once when it folds another axis
    block          elements of a long row that a thread takes at a time
    streaming      stores past the caches, where an output is written once and is large
    resident       bytes of the last cache: where inputs and outputs are less, nothing is stored past it
    reciprocals    one division for a row instead of one for each of its elements
    keep           a value of a row that two passes need is kept in a buffer between them
    ahead          while a row is worked on, the next one is asked for
    online         largest element and sum of exponentials in one pass
    moments        mean and variance in one pass, with sums in twice the precision
    split          a fold of few long rows is cut into pieces for the threads, and their results combined
    threads        whether threads are used
    """

    width: int = 0
    polynomials: bool = False
    accumulators: int = 1
    tile: int = 256
    block: int = 16384
    streaming: bool = False
    resident: int = 0
    reciprocals: bool = False
    keep: bool = False
    ahead: bool = False
    online: bool = False
    moments: bool = False
    split: int = 0
    threads: bool = True

    def having(self, **changes: Plain) -> Schedule:
        """This schedule with some choices changed."""
        return replace(self, **changes)

    def to_plain(self) -> Plain:
        """As JSON data."""
        return to_plain(self)

    @staticmethod
    def from_plain(data: Plain) -> Schedule:
        """From JSON data; raises `BadPlain`."""
        return from_plain(Schedule, data)
