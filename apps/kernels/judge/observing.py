"""A warm candidate in a process of its own that is watched from outside: for the policy's evidence and for the profile."""

from __future__ import annotations

from collections.abc import Sequence

from apps.kernels.jail import freeze as ice
from apps.kernels.judge.artefacts import Compilation
from apps.kernels.judge.runner import Runner
from apps.kernels.judge.session import Session

OUTPUTS_HELD = 256 << 20  # bytes of outputs that one window's calls may hold at once


class Observed:
    """The candidate under observation. It is called exactly as a timed one is."""

    def __init__(self, session: Session, runner: Runner, block: int, *, swept: bool = False) -> None:
        self.session = session
        self.runner = runner
        self.block = block
        self.swept = swept  # whether timed calls find the caches swept

    @property
    def pid(self) -> int:
        """Its process id, as the judge's process names it."""
        return self.runner.jailed.pid

    @property
    def compilations(self) -> tuple[Compilation, ...]:
        """The compilers' runs that built it, as their wrapper wrote them down."""
        return self.session.artefacts.compilations

    @property
    def objects(self) -> tuple[str, ...]:
        """Shared objects of its own that it has mapped, as it names them itself."""
        work = self.runner.jailed.work_inside.rstrip("/") + "/"
        paths = (path.removesuffix(" (deleted)") for _, _, path in ice.mapped_objects(self.pid))
        return tuple(sorted({path for path in paths if path.startswith(work)}))

    def window(self) -> None:
        """One window on new content, as in the timing; its runner counts calls and seconds."""
        order = self.runner.places.draw(self.block)
        self._write(order)
        if self.swept:
            self.session.sweep()
        self.runner.call(order, keep=1, timeout=min(120.0, self.session.left))

    def call(self, n: int) -> float:
        """Call it n times in a row on unchanged inputs; the seconds of the windows that took."""
        per_call = max(1, self.runner.problem.output_bytes)
        largest = max(1, min(1024, OUTPUTS_HELD // per_call))
        places = self.runner.places.firsts
        self._write(places)
        total = 0.0
        while n > 0:
            part = min(n, largest)
            order = [places[i % len(places)] for i in range(part)]
            window = self.runner.call(order, keep=0, timeout=min(120.0, self.session.left))
            total += window.nanoseconds / 1e9
            n -= part
        return total

    def _write(self, places: Sequence[int]) -> None:
        """New content to these places."""
        contents = self.session.contents
        rows = [self.runner.place(place) for place in places]
        contents.lay([contents.new() for _ in places], self.runner.arena, rows)

    def set_threads(self, k: int) -> None:
        """From the next call on, parallel regions of the calling thread use k threads."""
        self.runner.thaw()
        self.runner.jailed.ask({"do": "threads", "threads": k}, 10.0)
        self.runner.freeze()
