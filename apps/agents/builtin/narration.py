"""What the built-in agents say while they work: sentences with the numbers they decide by, streamed one by one."""

from __future__ import annotations

from apps.agents.builtin.form import walk
from apps.agents.builtin.nest import (
    Accumulate,
    Folds,
    For,
    Kernel,
    Par,
    Running,
    Statement,
    Store,
    Vec,
    expressions_in,
    statements_in,
)
from apps.agents.builtin.schedule import Schedule
from apps.agents.ports import Say

_FOLDS = {"sum": "sum", "product": "product", "max": "maximum", "min": "minimum", "any": "any", "all": "all",
          "argmax": "position of the largest", "argmin": "position of the smallest",
          "max_sum": "largest element with the sum of exponentials"}  # fmt: skip


class Narrator:
    """Says sentences as they come and keeps the whole text."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._parts: list[str] = []

    def tell(self, sentence: str) -> None:
        """One more sentence of this paragraph."""
        if sentence:
            self._give(sentence if not self._parts or self._parts[-1].endswith("\n") else f" {sentence}")

    def paragraph(self) -> None:
        """What follows is another thought."""
        if self._parts:
            self._give("\n\n")

    @property
    def text(self) -> str:
        """All that was said."""
        return "".join(self._parts).strip()

    def _give(self, piece: str) -> None:
        self._parts.append(piece)
        self._say(piece)


def milliseconds(seconds: float) -> str:
    """A time as engineers say it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.3g} µs"
    return f"{seconds * 1e3:.3g} ms"


def megabytes(count: float) -> str:
    """Bytes as engineers say them."""
    return f"{count / 1e6:.3g} MB" if count >= 1e6 else f"{count / 1e3:.3g} kB"


def listed(items: list[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


def loops(kernel: Kernel, schedule: Schedule) -> list[str]:
    """The kernel's loops in words, one sentence for each statement outside of all loops."""
    stages = [statement for statement in kernel.everything if isinstance(statement, Par | Folds | For | Vec)]
    sentences = []
    for number, stage in enumerate(stages):
        start = "" if len(stages) == 1 else ("First, " if number == 0 else "Then, ")
        sentence = f"{start}{_outer(stage)} {_inner(stage, schedule)}."
        sentences.append(sentence[0].upper() + sentence[1:])
    return sentences


def _outer(stage: Statement) -> str:
    if not isinstance(stage, Par):
        return "one thread"
    who = "the threads share" if stage.threads and stage.count > 1 else "one thread takes"
    what = []
    rows = 1
    for axis in stage.axes:
        rows *= axis.extent
    if stage.axes:
        what.append(f"{rows} row{'s' if rows > 1 else ''}")
    if stage.piece is not None and stage.piece.count > 1:
        pieces = f"{stage.piece.count} pieces of {stage.piece.size} elements"
        what.append(f"{pieces} of each" if stage.axes and rows > 1 else pieces)
    return f"{who} {' in '.join(what) or 'one row'}, and each"


def _inner(stage: Statement, schedule: Schedule) -> str:
    verbs = []
    for running in (s for s in statements_in(stage) if isinstance(s, Running)):
        carried = dict.fromkeys(_FOLDS.get(scan.monoid, scan.monoid) for scan in running.scans)
        verbs.append(f"carries the running {listed(list(carried))} along")
    for vec in (s for s in statements_in(stage) if isinstance(s, Vec)):
        done = [_FOLDS.get(s.fold.monoid, s.fold.monoid) for s in vec.body if isinstance(s, Accumulate)]
        stored = [s for s in vec.body if isinstance(s, Store)]
        how = f" {vec.lanes} lanes at a time" if vec.lanes > 1 else ""
        how += f" with {vec.unroll} accumulators" if vec.unroll > 1 and done else ""
        if done:
            verbs.append(f"folds the {listed(list(dict.fromkeys(done)))}{how}")
        if any(s.kept for s in stored):
            verbs.append("keeps what a later pass needs")
        if vec.ahead:
            verbs.append("asks for the next row")
        stored = [s for s in stored if not s.kept]
        if stored:
            past = " past the caches" if any(s.streaming for s in stored) else ""
            verbs.append(f"computes and stores {listed([s.buffer.name for s in stored])}{how}{past}")
    return ", ".join(dict.fromkeys(verbs)) or "stores its result"


def size(kernel: Kernel) -> str:
    """How many scalar operations stand in the kernel, for a sense of what was fused."""
    count = sum(1 for node in walk(*expressions_in(*kernel.everything)) if node.children)
    return f"{count} operation{'s' if count != 1 else ''}"
