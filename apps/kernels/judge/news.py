"""What a runner tells of its build, stage by stage, and what of it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.kernels.jail import freeze as ice
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.oracle import OpenProblem
from apps.kernels.judge.reports import believed, forged
from apps.kernels.plain import Plain

LONGEST_WORDS = 200


@dataclass
class News:
    """All that is known of a build so far; seconds and bytes are the judge's own measurements."""

    missing: tuple[str, ...] = ()  # names in the reference's state for which it has none
    renamed: dict[str, str] = field(
        default_factory=dict
    )  # and those that it has by another name, which has their values
    build_seconds: float = 0.0
    setup_seconds: float = 0.0  # of its constructor and prepare()
    setup_bytes: int = 0
    guarded: bool = False  # whether pages that can't be touched lie around its tensors
    buffers: dict[str, int] = field(default_factory=dict)  # where those lie that the reference updates
    nesting: Plain = None  # how its outputs lie in one another, by which names
    operators: dict[str, int] = field(default_factory=dict)  # what one call dispatched, where it was observed
    allocated: int | None = None  # bytes of new tensors that it made
    products: tuple[Plain, ...] = ()  # products and convolutions of the library that it dispatched
    _resident: int = 0  # bytes when it was imported

    def take(self, stage: str, said: dict[str, Plain], seconds: float, pid: int) -> None:
        """One stage's news; `seconds` is since the last one that ends something. Raises `CandidateFailed`."""
        with believed("news of its build"):
            if "buffers" in said:
                self.buffers = {str(k): int(v) for k, v in dict(said["buffers"]).items()}
            if stage == "imported":
                self.build_seconds = seconds
                self._resident = ice.resident_bytes(pid)
            elif stage == "constructed":
                self.missing = tuple(str(name) for name in said.get("missing", ()))
                self.renamed = {str(k): str(v) for k, v in dict(said.get("renamed") or {}).items()}
            elif stage == "prepared":
                self.setup_seconds = seconds
                self.setup_bytes = max(0, ice.resident_bytes(pid) - self._resident)
            elif stage == "warm":
                self.guarded = bool(said.get("guarded"))
                self.nesting = said.get("nesting")
            elif stage == "observed":
                self.operators = {str(name): int(count) for name, count in said["operators"].items()}
                self.allocated = int(said["allocated"])
                self.products = tuple(said["products"])

    def check_nesting(self, problem: OpenProblem) -> None:
        """Outputs lie in one another, and are named, as the reference's. Raises `CandidateFailed`."""
        if self.nesting is None:
            raise forged("news of its build that leave out its outputs")
        wanted = nesting_of(problem.output_tree)
        with believed("how its outputs are nested"):
            if self.nesting != wanted:
                theirs = f"the reference's {in_words(wanted)}"
                raise CandidateFailed("incorrect", f"its outputs are {in_words(self.nesting)}, {theirs}")


def nesting_of(tree: Plain) -> Plain:
    """A value's tree as `inside.runner.nesting` says it: a list for lists and tuples, a dictionary, "t" for a tensor."""
    ((kind, content),) = tree.items()
    if kind in ("list", "tuple"):
        return [nesting_of(item) for item in content]
    if kind == "dict":
        return {key: nesting_of(item) for key, item in content}
    return "t" if kind == "t" else str(content)


def in_words(nesting: Plain) -> str:
    """The same for people: (tensor, None), {"sum": tensor}."""
    if isinstance(nesting, list):
        return f"({', '.join(map(in_words, nesting))})"[:LONGEST_WORDS]
    if isinstance(nesting, dict):
        return f"{{{', '.join(f'{key}: {in_words(item)}' for key, item in nesting.items())}}}"[:LONGEST_WORDS]
    return "tensor" if nesting == "t" else str(nesting)[:LONGEST_WORDS]
