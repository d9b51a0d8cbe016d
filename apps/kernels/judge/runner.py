"""The judge's side of a runner: start it, watch it through its build, call it, read its outputs while it stands still.

A runner is frozen whenever it is not inside a window: late work can't finish, early work can't start, and idle threads
don't disturb the other side. Nothing it says is believed but where to look.
"""

from __future__ import annotations

import collections
import ctypes
import json
import os
import signal
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from apps.kernels.jail import ChannelBroken, ChannelForged, ChannelTimeout, Jailed, Limits, Zygote, compilers
from apps.kernels.jail import freeze as ice
from apps.kernels.jail.channel import BYTES, HEADER
from apps.kernels.jail.isolation import seccomp_filters
from apps.kernels.jail.placing import awake_apart
from apps.kernels.jail.syscalls import read_memory, write_memory
from apps.kernels.judge.artefacts import Artefacts, collect
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.memory import ITEM_BYTES, Arena, Place, Places, SharedMemory, TensorSpec, flush, scattered
from apps.kernels.judge.oracle import PUBLIC_SEED, Oracle
from apps.kernels.judge.windows import Output, Window
from apps.kernels.plain import Plain

ENTRY = struct.Struct("<QI")
POISON_BYTE = 0x7F  # 3.4e38 as float32: no tolerance takes it for an answer
PERTURB = POISON_BYTE ^ 0xFF  # glibc fills new memory with the complement
BUILD_SECONDS = 240.0
SECOND_ANSWER_SECONDS = 1.0  # that the rest of a window may take where something spoke before its end
COMPILES = "torch compiles"  # the one rule that is seen broken inside, `inside.closed`
ABORTED = 6  # the exit code that `inside.aborts` makes of SIGABRT


@dataclass(frozen=True)
class Options:
    """How a runner is started."""

    role: str  # reference, compiled, candidate or empty
    source: str = ""
    regions: int = 2  # sets of inputs that lie in its arena at a time
    ways: int = 0  # in which a set may lie in its region, by chance; 0: as near to the region's ends as may be
    warm_seconds: float = 0.3
    threads: int = 0
    perturb: int = 0
    observe: bool = False
    private: bool = False
    guard: bool = False  # pages that can't be touched around every tensor; slow, so for checking only
    askew: bool = False  # inputs start where torch's allocator would not put them
    seed: int = PUBLIC_SEED
    extra: Plain = None

    def places(self, inputs: Sequence[TensorSpec]) -> Places:
        """Where the inputs of whoever is started so may lie."""
        if self.ways:
            return scattered(inputs, self.regions, self.ways)
        return flush(inputs, self.regions, askew=self.askew)


@dataclass
class Pause:
    """A stop in the midst of a window: seconds after its beginning, and what is done meanwhile.

    `taken` is how many seconds after the beginning the called thread stood still; None where the window was over before.
    """

    seconds: float
    meanwhile: Callable[[], None]
    taken: float | None = None
    cpu: float = 0.0  # seconds of processor time that the called thread had had of the window by then
    lasted: float = 0.0  # seconds


class Runner:
    """A running model. Frozen between calls once `close_building` was called."""

    def __init__(
        self,
        zygote: Zygote,
        oracle: Oracle,
        options: Options,
        limits: Limits,
        built: Artefacts,
        arena: Arena | None = None,
    ) -> None:
        self.options = options
        self.problem = oracle.problem
        self.name = options.role
        lies_in = arena or Arena(options.places(self.problem.inputs))
        self._own = None if arena else lies_in
        self.places, self.arena = lies_in.places, lies_in.memory
        self._built = SharedMemory("built", len(built.tar)) if built.tar else SharedMemory("built", 0)
        if built.tar:
            self._built.view[: len(built.tar)] = built.tar
        self.layouts: list[Plain] = []
        self.alive: collections.deque[Window] = collections.deque()
        self.missing: tuple[str, ...] = ()
        self.build_seconds = self.setup_seconds = self.warm_call_seconds = 0.0
        self.setup_bytes = 0
        self.guarded = False  # whether pages that can't be touched lie around its tensors
        self.operators: dict[str, int] = {}  # what one call dispatched, where it was observed
        self.allocated: int | None = None  # bytes of new tensors that it made
        self.products: tuple[Plain, ...] = ()  # products and convolutions of the library that it dispatched
        self.buffers: dict[str, int] = {}
        self.built = Artefacts()
        self.frozen = False
        self.calls, self.seconds = 0, 0.0  # of all its windows so far, counted or not
        self._turns: dict[int, ice.Turns] = {}  # what its threads had had of the processors when it was frozen
        self._worked: dict[int, int] = {}  # nanoseconds that each of them had since it was frozen the time before
        self._inputs: tuple[tuple[int, int], ...] = ()
        self._resident_before = 0
        self._filters = 0
        files = (self.arena.fd, oracle.weights().fd, self._built.fd)
        entry = "apps.kernels.inside.runner:main"
        self.jailed: Jailed = zygote.spawn(
            entry, self._payload(oracle), limits=limits, files=files, perturb=options.perturb
        )

    def _payload(self, oracle: Oracle) -> Plain:
        problem, options = self.problem, self.options
        return {
            "role": options.role,
            "source": options.source,
            "init": problem.init,
            "inputs": problem.input_tree,
            "specs": [spec.plain() for spec in problem.inputs],
            "outputs": [spec.plain() for spec in problem.outputs],
            "output_tree": problem.output_tree,
            "state": [{"name": s.name, "dtype": s.dtype, "shape": list(s.shape), "at": s.at} for s in problem.state],
            "updated": list(problem.updated),
            "training": problem.training,
            "seed": options.seed,
            "threads": options.threads or os.cpu_count() or 1,
            "warm_seconds": options.warm_seconds,
            "placements": [[place.plain() for place in row] for row in self.places.rows],
            "firsts": list(self.places.firsts),
            "observe": options.observe,
            "private": options.private,
            "guard": options.guard,
            "compilers": compilers(),
            "extra": options.extra,
        }

    # -- building ----------------------------------------------------------------------------------------------------

    def build(self, timeout: float = BUILD_SECONDS) -> None:
        """Follow it through import, construction, state, prepare and warm-up. Raises `CandidateFailed`."""
        started = time.monotonic()
        last = "observed" if self.options.observe else "warm"
        stage = ""
        while stage != last:
            said = self._receive(timeout, "building")
            if "failed" in said:
                self._fail_build(said)
            stage = str(said.get("stage"))
            with _believed("news of its build"):
                self._note(stage, said, time.monotonic() - started)
            if stage in ("imported", "prepared"):
                started = time.monotonic()

    def _note(self, stage: str, said: dict[str, Plain], seconds: float) -> None:
        """One stage's news; `seconds` is since the last one that ends something."""
        if stage == "imported":
            self.build_seconds = seconds
            self._resident_before = ice.resident_bytes(self.jailed.pid)
        elif stage == "constructed":
            self.missing = tuple(str(name) for name in said.get("missing", ()))
        elif stage == "prepared":
            self.setup_seconds = seconds
            self.setup_bytes = max(0, ice.resident_bytes(self.jailed.pid) - self._resident_before)
        elif stage == "warm":
            self.warm_call_seconds = max(1e-7, float(said.get("seconds", 0.0)))
            self.buffers = {str(k): int(v) for k, v in dict(said.get("buffers") or {}).items()}
            self.guarded = bool(said.get("guarded"))
            self._check_keys([str(key) for key in said.get("keys") or ()])
        elif stage == "observed":
            self.operators = {str(name): int(count) for name, count in said["operators"].items()}
            self.allocated = int(said["allocated"])
            self.products = tuple(said["products"])

    def _check_keys(self, keys: list[str]) -> None:
        wanted = keys_of(self.problem.output_tree)
        if self.options.role == "candidate" and keys != wanted:
            names, theirs = ", ".join(keys) or "by no keys", ", ".join(wanted) or "by no keys"
            raise CandidateFailed("incorrect", f"its outputs are named {names}, the reference's {theirs}")

    def _fail_build(self, said: dict[str, Plain]) -> None:
        stage, detail = str(said.get("stage")), str(said["failed"])
        words = {"import": "while being imported", "construct": "in its constructor", "prepare": "in prepare()"}
        where = words.get(stage, "in its first calls")
        if said.get("rule") == COMPILES:
            raise CandidateFailed("rejected", f"{where}: {detail}", COMPILES)
        if any(text in detail for text in ("can't allocate memory", "std::bad_alloc", "MemoryError")):
            raise CandidateFailed("out_of_memory", f"{where}: {detail}")
        verdict = "build_failed" if stage == "import" else "crashed"
        raise CandidateFailed(verdict, f"it raised {where}:\n{detail}")

    def close_building(self, *, keep_artefacts: bool = False) -> None:
        """End the build phase: no exec, no fork from here on; verified from outside, then frozen."""
        if keep_artefacts:
            self.built = collect(self.jailed)
        filters = max(seccomp_filters(self.jailed.pid) or (0,))
        self.jailed.send({"do": "close"})
        self._receive(30.0, "closing its build phase")
        if self.jailed.end_build():
            raise CandidateFailed("rejected", "a process it started outlives the build phase", "child process")
        self._inputs = tuple(self._arena_ranges())
        self.freeze()
        counts = seccomp_filters(self.jailed.pid)
        if counts and min(counts) < filters + 1:
            raise CandidateFailed("rejected", "the build phase could not be closed in every thread", "jail evaded")
        self._filters = min(counts) if counts else 0
        self._refuse_children()

    def _arena_ranges(self) -> list[tuple[int, int]]:
        found = []
        with open(f"/proc/{self.jailed.pid}/maps", encoding="utf-8", errors="replace") as file:
            for line in file:
                if "memfd:pragma-arena" in line:
                    start, end = line.split(None, 1)[0].split("-")
                    found.append((int(start, 16), int(end, 16)))
        return found

    def _refuse_children(self) -> None:
        if ice.children(self.jailed.pid):
            raise CandidateFailed("rejected", "a process it started outlives the build phase", "child process")

    # -- calling -----------------------------------------------------------------------------------------------------

    def call(self, order: Sequence[int], *, keep: int = 1, timeout: float = 60.0, pause: Pause | None = None) -> Window:
        """One window: thaw, call the model once for each placement named, freeze. Raises `CandidateFailed`.

        `keep` earlier windows' outputs stay alive in the runner, to see that later calls leave them alone.
        """
        self.check_still()
        before = self._caller_nanoseconds()
        body = struct.pack(f"<{len(order) + 1}H", keep, *order)
        frame = HEADER.pack(len(body), BYTES) + body
        while len(self.alive) > keep:
            self.alive.popleft()
        channel, pid = self.jailed.channel, self.jailed.pid
        if self.jailed.has_spoken:
            raise _forged("an answer to what it has not been asked yet")
        started = time.perf_counter_ns()
        try:
            channel.socket.sendall(frame)
            with awake_apart(pid, self._worked):
                woken = time.perf_counter_ns()
                os.kill(pid, signal.SIGCONT)
            if pause is not None:
                self._pause(pause, woken)
            answer = self.jailed.receive_bytes(timeout)
            ended = time.perf_counter_ns()
        except (ChannelBroken, ChannelTimeout, OSError) as problem:
            self._fail_call(problem)
        self.freeze()
        window = Window(ended - started, self._outputs(answer, len(order)), self._caller_nanoseconds() - before)
        self._check_storage(window)
        self.alive.append(window)
        self.calls += len(order)
        self.seconds += window.nanoseconds / 1e9 - (pause.lasted if pause else 0.0)
        return window

    def _pause(self, pause: Pause, woken: int) -> None:
        """Stop it in the midst of a window, unless it has ended by then, and let it go on."""
        before = self._caller_nanoseconds()
        time.sleep(max(0.0, pause.seconds - (time.perf_counter_ns() - woken) / 1e9))
        taken = (self.freeze() - woken) / 1e9
        if not self.jailed.has_spoken:
            pause.cpu = (self._caller_nanoseconds() - before) / 1e9
            pause.taken = taken
            pause.meanwhile()
        pause.lasted = (time.perf_counter_ns() - woken) / 1e9 - taken
        self.thaw()

    def _caller_nanoseconds(self) -> int:
        """Processor time of the thread that is called, when it was frozen last; 0 where the kernel doesn't count."""
        turns = self._turns.get(self.jailed.pid)
        return turns.ran if turns else 0

    def _outputs(self, answer: bytes, calls: int) -> list[list[Output]]:
        with _believed("where its outputs lie"):
            (size,) = struct.unpack_from("<I", answer)
            entries = list(ENTRY.iter_unpack(answer[4 : 4 + size]))
            if len(answer) > 4 + size:
                self.layouts += json.loads(answer[4 + size :])
        expected = self.problem.outputs
        if len(entries) != calls * len(expected):
            if self._speaks_again():
                raise _forged("a second answer to one question")
            count = len(entries) / max(1, calls)
            raise CandidateFailed("incorrect", f"it returns {count:g} tensors a call, the reference {len(expected)}")
        with _believed("how its outputs are laid out"):
            flat = [self._output(entry, expected[i % len(expected)]) for i, entry in enumerate(entries)]
        return [flat[i : i + len(expected)] for i in range(0, len(flat), len(expected))]

    def _speaks_again(self) -> bool:
        """Whether more comes though all was said: then what came was not the runner's own answer."""
        until = time.monotonic() + SECOND_ANSWER_SECONDS
        self.thaw()
        while not self.jailed.has_spoken and time.monotonic() < until:
            time.sleep(0.005)
        self.freeze()
        return self.jailed.has_spoken

    def _output(self, entry: tuple[int, int], expected: TensorSpec) -> Output:
        address, number = entry
        if number >= len(self.layouts):
            raise CandidateFailed("rejected", "it names an output layout it never described", "forged report")
        layout = self.layouts[number]
        if not isinstance(layout, dict) or "dtype" not in layout:
            kind = layout.get("type") if isinstance(layout, dict) else layout
            raise CandidateFailed("incorrect", f"it returns a {kind}, not a plain tensor")
        shape, stride = tuple(layout["shape"]), tuple(layout["stride"])
        if shape != expected.shape:
            raise CandidateFailed("incorrect", f"its output has shape {shape}, the reference's {expected.shape}")
        if layout["dtype"] != expected.dtype:
            raise CandidateFailed("incorrect", f"its output is {layout['dtype']}, the reference's {expected.dtype}")
        if layout.get("device") != "cpu":
            raise CandidateFailed("incorrect", f"its output lies on {layout.get('device')}, the reference's on cpu")
        if len(stride) != len(shape) or any(not isinstance(s, int) or s < 0 for s in stride):
            raise CandidateFailed("incorrect", f"its output has strides {stride}")
        item = ITEM_BYTES[expected.dtype]
        span = 0 if expected.numel == 0 else item * (1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)))
        if span > 16 * item * expected.numel + (1 << 20):
            raise CandidateFailed("incorrect", f"its output is scattered: strides {stride} for shape {shape}")
        spec = TensorSpec(expected.dtype, shape, stride, span)
        if spec.shares_memory and not expected.shares_memory:
            words = f"its output's elements share memory (strides {stride} for shape {shape}), the reference's don't"
            raise CandidateFailed("incorrect", words)
        return Output(address, spec)

    def _check_storage(self, window: Window) -> None:
        """Outputs are new storage: no input, no earlier output that is still alive, and no later call changes them."""
        for outputs in window.outputs:
            for output in outputs:
                if not self.problem.returns_view and any(
                    output.address < e and s < output.end for s, e in self._inputs
                ):
                    raise CandidateFailed("incorrect", "it returns its input's own memory, the reference new memory")
        if self.problem.returns_view:
            return
        if not self.problem.outputs_share:
            for outputs in window.outputs:
                _refuse_shared(outputs)
        for earlier in self.alive:
            for old in (o for outputs in earlier.outputs for o in outputs):
                for new in (o for outputs in window.outputs for o in outputs):
                    if old.spec.bytes and new.address < old.end and old.address < new.end:
                        raise CandidateFailed(
                            "incorrect", "it returns the same memory again while the earlier output is still held"
                        )
            for sample in earlier.samples:
                if (
                    self.read(earlier.outputs[sample.call][sample.output], sample.offset, len(sample.data))
                    != sample.data
                ):
                    raise CandidateFailed("incorrect", "a later call changed an earlier output")

    def _fail_call(self, problem: Exception) -> None:
        if isinstance(problem, ChannelTimeout):
            self.jailed.kill()
            raise CandidateFailed("timed_out", "a call did not end in time") from None
        if isinstance(problem, ChannelForged):
            raise _raised_or_forged(str(problem)) from None
        raise self._death("in a call") from None

    def _death(self, where: str) -> CandidateFailed:
        ended = self.jailed.wait(5.0)
        tail = self.jailed.output.strip()[-1500:]
        verdict = "out_of_memory" if ended.out_of_memory else "timed_out" if ended.timed_out else "crashed"
        hint = ""
        if ended.signal == signal.SIGSEGV:
            hint = "; it touched memory that isn't its own (past the end of an input, or writing to one)"
        words = "aborted (SIGABRT)" if ended.code == ABORTED else ended.words
        return CandidateFailed(verdict, f"{where} it {words}{hint}" + (f":\n{tail}" if tail else ""))

    # -- standing still ----------------------------------------------------------------------------------------------

    def freeze(self) -> int:
        """Stop it in every thread; when the called one was seen to stand still, as `freeze.freeze` says."""
        try:
            called = ice.freeze(self.jailed.pid)
        except ice.NotFrozen:
            raise self._death("") from None
        self.frozen = True
        before, self._turns = self._turns, ice.turns(self.jailed.pid)
        self._worked = {
            thread: had.ran - (before[thread].ran if thread in before else 0) for thread, had in self._turns.items()
        }
        return called

    def check_still(self) -> None:
        """It must not have run since it was frozen. Raises `CandidateFailed`."""
        if self.frozen and (moved := ice.since(self._turns, ice.turns(self.jailed.pid))):
            words = f"it ran while it should have stood still, between its calls ({moved})"
            raise CandidateFailed("rejected", words, "jail evaded")

    def thaw(self) -> None:
        """Let it run outside a window (while being profiled)."""
        ice.thaw(self.jailed.pid)
        self.frozen = False

    def process_changes(self) -> dict[str, Plain]:
        """What the model has changed for its whole process since it was loaded: name to value before and after."""
        self.thaw()
        self.jailed.send({"do": "state"})
        said = self._receive(10.0, "saying what it has set").get("changed")
        self.freeze()
        if not isinstance(said, dict):
            raise _forged("what it has set for its process")
        return {str(name): value for name, value in said.items() if isinstance(value, list) and len(value) == 2}

    def check_alone(self) -> None:
        """Nothing may run beside it: no child process, the filters still in place in every thread; and it stands still."""
        self.check_still()
        self._refuse_children()
        counts = seccomp_filters(self.jailed.pid)
        if counts and min(counts) < self._filters:
            raise CandidateFailed("rejected", "a thread escaped the closed build phase", "jail evaded")

    def read(self, output: Output, offset: int, size: int) -> bytes:
        """Bytes of an output."""
        buffer = ctypes.create_string_buffer(size)
        self._copy(output.address + offset, ctypes.cast(buffer, ctypes.c_void_p), size)
        return buffer.raw

    def read_into(self, output: Output, memory: SharedMemory, offset: int) -> None:
        """All bytes of an output into shared memory."""
        done = 0
        while done < output.spec.bytes:
            part = min(output.spec.bytes - done, 1 << 30)
            self._copy(output.address + done, memory.pointer(offset + done), part)
            done += part

    def read_address(self, address: int, size: int) -> bytes:
        """Bytes at an address of the frozen runner (a buffer's)."""
        buffer = ctypes.create_string_buffer(max(1, size))
        self._copy(address, ctypes.cast(buffer, ctypes.c_void_p), size)
        return buffer.raw[:size]

    def read_raw(self, address: int, memory: SharedMemory, offset: int, size: int) -> None:
        """Bytes at an address of the frozen runner into shared memory."""
        self._copy(address, memory.pointer(offset), size)

    def _copy(self, address: int, into: ctypes.c_void_p, size: int) -> None:
        try:
            got = read_memory(self.jailed.pid, address, into, size)
        except OSError as problem:
            raise CandidateFailed("incorrect", f"its output's memory can't be read: {problem.strerror}") from None
        if got != size:
            raise CandidateFailed("incorrect", "its output's memory ends before its shape does")

    def poison(self, window: Window, scratch: SharedMemory, spots: Sequence[float] | None = None) -> None:
        """Fill a window's outputs, or pages of them at `spots`, with what nobody takes for an answer: they are about to go."""
        if self.problem.returns_view:
            return
        for output in (output for outputs in window.outputs for output in outputs):
            whole = range(0, output.spec.bytes, scratch.size)
            parts = [(at, min(scratch.size, output.spec.bytes - at)) for at in whole]
            for at, size in parts if spots is None else output.pages(spots):
                try:
                    write_memory(self.jailed.pid, output.address + at, scratch.pointer(0), size)
                except OSError:
                    return  # read-only memory; the next check of its content decides
        window.samples.clear()

    def place(self, index: int) -> tuple[Place, ...]:
        """Where the inputs of a placement lie in the arena."""
        return self.places.rows[index]

    def close(self) -> None:
        """End it and free its memory."""
        self.jailed.close()
        if self._own:
            self._own.close()
        self._built.close()

    def _receive(self, timeout: float, what: str) -> dict[str, Plain]:
        try:
            return self.jailed.receive(timeout)
        except ChannelTimeout:
            self.jailed.kill()
            raise CandidateFailed("timed_out", f"{what} took more than {timeout:.0f} s") from None
        except ChannelForged as problem:
            raise _forged(str(problem)) from None
        except ChannelBroken:
            raise self._death(what) from None


def _refuse_shared(outputs: list[Output]) -> None:
    """The outputs of one call each have memory of their own."""
    ordered = sorted((output for output in outputs if output.spec.bytes), key=lambda output: output.address)
    for one, other in pairwise(ordered):
        if other.address < one.end:
            raise CandidateFailed("incorrect", "two of its outputs share memory, the reference's don't")


def keys_of(tree: Plain) -> list[str]:
    """The keys of the dictionaries in a value's tree, in the order of its tensors."""
    ((kind, content),) = tree.items()
    if kind == "dict":
        return [name for key, item in content for name in (str(key), *keys_of(item))]
    return [name for item in content for name in keys_of(item)] if kind in ("list", "tuple") else []


@contextmanager
def _believed(what: str) -> Iterator[None]:
    """Whatever can't be read of what a runner says was not said by the judge's own code in it."""
    try:
        yield
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        struct.error,
    ) as problem:
        raise _forged(f"{what}: {type(problem).__name__}: {problem}") from None


def _forged(detail: str) -> CandidateFailed:
    return CandidateFailed("rejected", f"something wrote on the judge's channel: {detail[:200]}", "forged report")


def _raised_or_forged(text: str) -> CandidateFailed:
    """Where an answer's bytes were expected an object came: the runner's account of an exception, or a forgery."""
    try:
        said = json.loads(text)
        detail = str(said["failed"])
    except (ValueError, TypeError, KeyError):
        return _forged(text)
    if said.get("rule") == COMPILES:
        return CandidateFailed("rejected", f"in a call: {detail}", COMPILES)
    verdict = "out_of_memory" if "can't allocate memory" in detail else "crashed"
    return CandidateFailed(verdict, f"a call raised:\n{detail}")
