"""The judge's side of the oracle: asks for inputs, answers and state, and knows where they lie."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from apps.kernels.host.processor import processor
from apps.kernels.inside.draw_names import AS_GIVEN
from apps.kernels.jail import ChannelBroken, ChannelTimeout, Jailed, Limits, Zygote
from apps.kernels.judge.errors import ProblemRefused, ProblemTooLarge
from apps.kernels.judge.memory import SharedMemory, TensorSpec, freed_on_failure, pack
from apps.kernels.plain import Plain, from_plain
from apps.kernels.strength import Strength

PUBLIC_SEED = 20_250_131  # construction only; inputs are drawn under secret ones
ANSWER_SECONDS = 120.0


@dataclass(frozen=True)
class StateItem:
    """One entry of the reference's state_dict and where it lies in the state file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    at: int


@dataclass(frozen=True)
class OpenProblem:
    """What the oracle found out about the problem: the layouts that bind everybody."""

    init: Plain
    input_tree: Plain
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    output_tree: Plain
    state: tuple[StateItem, ...]
    training: bool
    reductions: tuple[int, ...]  # for each output: terms of the longest sum that goes into it
    double: bool
    views: tuple[bool, ...]  # for each output: whether it lies in an input's or a parameter's memory
    outputs_share: bool  # whether outputs of one call share memory
    updated: tuple[str, ...]
    operators: dict[str, int]
    seconds: float
    allocated: int = 0  # bytes of new tensors that one call makes
    near: float = 2.0**-10  # torch's own answer counts as near the exact one up to this error, relative to scale
    process_state: dict[str, Plain] = field(default_factory=dict)  # what the problem sets for its whole process

    @property
    def input_bytes(self) -> int:
        """Bytes of one set of inputs."""
        return sum(spec.bytes for spec in self.inputs)

    @property
    def output_bytes(self) -> int:
        """Bytes of one set of outputs."""
        return sum(spec.numel * spec.item for spec in self.outputs)


@dataclass
class Answer:
    """Where the expected outputs lie: per output the exact one and torch's own."""

    exact: list[int]
    own: list[int]
    finite: bool
    double: bool
    seconds: float
    hints: list[dict[str, Plain]] = field(default_factory=list)  # per output: what rounding may decide


class Oracle:
    """A jailed process that runs the problem's code, and the memory it shares with the judge."""

    def __init__(self, zygote: Zygote, source: str, limits: Limits, slots: int, layout: str = "") -> None:
        threads = processor().cores
        self.bank = SharedMemory("bank", 0)
        self.expect = SharedMemory("expect", 0)
        self.state = SharedMemory("state", 0)
        self.slots = slots
        self.jumps = False  # whether answers say which elements lie at a discontinuity
        self._memories = [self.bank, self.expect, self.state]
        self._weights: SharedMemory | None = None
        payload = {"source": source, "seed": PUBLIC_SEED, "threads": threads, "layout": layout}
        files = [memory.fd for memory in self._memories]
        with freed_on_failure(*self._memories):
            self.jailed: Jailed = zygote.spawn("apps.kernels.inside.oracle:main", payload, limits=limits, files=files)
        try:
            self.problem = self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> OpenProblem:
        said = self._receive(ANSWER_SECONDS)
        if "refused" in said:
            raise (ProblemTooLarge if said.get("too_large") else ProblemRefused)(str(said["refused"]))
        inputs = tuple(TensorSpec.read(spec) for spec in said["specs"])
        outputs = tuple(TensorSpec.read(spec) for spec in said["outputs"])
        sizes = [TensorSpec.read(spec) for spec in said["state"]]
        places, end = pack([spec.numel * spec.item for spec in sizes])
        state = tuple(
            StateItem(str(item["name"]), spec.dtype, spec.shape, at)
            for item, spec, at in zip(said["state"], sizes, places, strict=True)
        )
        self.state.grow(2 * end)
        self.state_bytes = end
        self.offsets, self.slot_bytes = pack([spec.bytes for spec in inputs])
        self.bank.grow(self.slot_bytes * (self.slots + 1))
        wide = [8 * spec.numel for spec in outputs]
        exact, end = pack(wide)
        own, end = pack([spec.numel * spec.item for spec in outputs], end)
        self._selects: list[Plain] = list(said["selects"])
        scores, end = pack([8 * int(s["rows"]) * int(s["n"]) if s else 0 for s in self._selects], end)
        jumps, end = pack([spec.numel for spec in outputs], end)
        rows = zip(exact, own, scores, jumps, strict=True)
        self._places = [{"exact": e, "own": o, "scores": s, "jumps": j} for e, o, s, j in rows]
        self.expect.grow(end)
        return OpenProblem(
            init=said["init"],
            input_tree=said["inputs"],
            inputs=inputs,
            outputs=outputs,
            output_tree=said["output_tree"],
            state=state,
            training=bool(said["training"]),
            reductions=tuple(int(terms) for terms in said["reductions"]),
            double=bool(said["double"]),
            views=tuple(map(bool, said["views"])),
            outputs_share=bool(said["outputs_share"]),
            updated=tuple(said["updated"]),
            operators={str(k): int(v) for k, v in said["operators"].items()},
            seconds=float(said["seconds"]),
            allocated=int(said["allocated"]),
            near=float(said["near"]),
            process_state=dict(said["process_state"]),
        )

    # -- what it can be asked ----------------------------------------------------------------------------------------

    def slot(self, index: int) -> list[int]:
        """Offsets of a set of inputs in the bank; slot `slots` is for questions."""
        return [index * self.slot_bytes + offset for offset in self.offsets]

    def draw(self, slot: int, how: str = AS_GIVEN, seed: int | None = None) -> int:
        """Draw a set of inputs into a slot of the bank under a secret seed, which is returned."""
        seed = secrets.randbits(48) if seed is None else seed
        said = self._ask({"do": "draw", "seed": seed, "how": how, "offsets": self.slot(slot)})
        if "refused" in said:
            raise ProblemRefused(str(said["refused"]))
        return seed

    def answer(self, slot: int | None = None, buffers: dict[str, int] | None = None) -> Answer:
        """Compute what belongs to the inputs in a slot (the question's by default) into the expect file."""
        offsets = self.slot(self.slots if slot is None else slot)
        double = self.problem.double
        ask = {"do": "answer", "offsets": offsets, "places": self._places, "jumps": self.jumps, "buffers": buffers}
        said = self._ask(ask)
        rows = zip(said["outputs"], self._places, self._selects, strict=True)
        hints = [_hint(*row) for row in rows]
        exact = [int(place["exact"]) for place in self._places]
        own = [int(place["own"]) for place in self._places]
        return Answer(exact, own, bool(said["finite"]), double, float(said["seconds"]), hints)

    def try_answer(self, buffers: dict[str, int] | None = None) -> Answer | None:
        """The answer to the question, or None where the reference can't take these inputs."""
        try:
            return self.answer(buffers=buffers)
        except ProblemRefused:
            if self.jailed.ended is not None:
                raise
            return None

    def set_state(self, seed: int = PUBLIC_SEED, alter: int | None = None, missing: Sequence[str] = ()) -> None:
        """Write the state that models constructed under `seed` shall have. `alter` seeds other weights: of those in `missing`,
        which a candidate can't be given, the ones that are alike under any seed.
        """
        places = {item.name: item.at for item in self.problem.state}
        self._ask({"do": "state", "seed": seed, "alter": alter, "missing": list(missing), "places": places})
        self._forget_weights()

    def weights(self) -> SharedMemory:
        """The state as runners get it: a sealed copy, so that none of them can change what another one loads."""
        if self._weights is None:
            self._weights = SharedMemory("weights", self.state_bytes)
            self._weights.view[: self.state_bytes] = self.state.view[: self.state_bytes]
            self._weights.seal()
        return self._weights

    def _forget_weights(self) -> None:
        if self._weights is not None:
            self._weights.close()
            self._weights = None

    def examine(self, seconds: float) -> Strength:
        """How much the problem's own checks can tell. Takes about `seconds` at most. Raises `ProblemRefused`, `BadPlain`."""
        return from_plain(Strength, self._ask({"do": "prove", "seconds": seconds})["strength"])

    def close(self) -> None:
        """End the process and free its memory."""
        self.jailed.close()
        self._forget_weights()
        for memory in self._memories:
            memory.close()
        self._memories = []

    def _ask(self, message: Plain) -> dict[str, Plain]:
        try:
            self.jailed.send(message)
        except ChannelBroken:
            raise ProblemRefused(self._end()) from None
        said = self._receive(ANSWER_SECONDS)
        if "error" in said:
            raise ProblemRefused(f"the reference raised while being judged:\n{said['error']}")
        return said

    def _receive(self, timeout: float) -> dict[str, Plain]:
        try:
            return self.jailed.receive(timeout)
        except ChannelTimeout:
            raise ProblemRefused(f"the reference took more than {timeout:.0f} s") from None
        except ChannelBroken:
            raise ProblemRefused(self._end()) from None

    def _end(self) -> str:
        ended = self.jailed.wait(5)
        tail = self.jailed.output.strip()[-800:]
        return f"the reference's process {ended.words}" + (f":\n{tail}" if tail else "")


def _hint(said: Plain, place: Plain, selects: Plain) -> dict[str, Plain]:
    """What the comparer must know of one output beside its answers: where it may jump, what its indices select from."""
    hint: dict[str, Plain] = {}
    if said["jumps"]:
        hint["jumps"] = int(place["jumps"])
    if selects is not None and said["limit"] is not None:
        hint["scores"] = {**selects, "at": int(place["scores"]), "limit": float(said["limit"])}
    return hint
