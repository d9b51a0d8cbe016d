"""What a runner tells of its build, stage by stage, and what of it is kept."""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.kernels.jail import freeze as ice
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.oracle import OpenProblem
from apps.kernels.judge.reports import believed
from apps.kernels.plain import Plain


@dataclass
class News:
    """All that is known of a build so far; seconds and bytes are the judge's own measurements."""

    missing: tuple[str, ...] = ()  # names in the reference's state for which it has none
    build_seconds: float = 0.0
    setup_seconds: float = 0.0  # of its constructor and prepare()
    setup_bytes: int = 0
    guarded: bool = False  # whether pages that can't be touched lie around its tensors
    buffers: dict[str, int] = field(default_factory=dict)  # where those lie that the reference updates
    keys: list[str] = field(default_factory=list)  # by which its outputs are named
    operators: dict[str, int] = field(default_factory=dict)  # what one call dispatched, where it was observed
    allocated: int | None = None  # bytes of new tensors that it made
    products: tuple[Plain, ...] = ()  # products and convolutions of the library that it dispatched
    _resident: int = 0  # bytes when it was imported

    def take(self, stage: str, said: dict[str, Plain], seconds: float, pid: int) -> None:
        """One stage's news; `seconds` is since the last one that ends something. Raises `CandidateFailed`."""
        with believed("news of its build"):
            if stage == "imported":
                self.build_seconds = seconds
                self._resident = ice.resident_bytes(pid)
            elif stage == "constructed":
                self.missing = tuple(str(name) for name in said.get("missing", ()))
            elif stage == "prepared":
                self.setup_seconds = seconds
                self.setup_bytes = max(0, ice.resident_bytes(pid) - self._resident)
            elif stage == "warm":
                self.buffers = {str(k): int(v) for k, v in dict(said.get("buffers") or {}).items()}
                self.guarded = bool(said.get("guarded"))
                self.keys = [str(key) for key in said.get("keys") or ()]
            elif stage == "observed":
                self.operators = {str(name): int(count) for name, count in said["operators"].items()}
                self.allocated = int(said["allocated"])
                self.products = tuple(said["products"])

    def check_keys(self, problem: OpenProblem) -> None:
        """Outputs are named as the reference's. Raises `CandidateFailed`."""
        wanted = keys_of(problem.output_tree)
        if self.keys != wanted:
            names, theirs = ", ".join(self.keys) or "by no keys", ", ".join(wanted) or "by no keys"
            raise CandidateFailed("incorrect", f"its outputs are named {names}, the reference's {theirs}")


def keys_of(tree: Plain) -> list[str]:
    """The keys of the dictionaries in a value's tree, in the order of its tensors."""
    ((kind, content),) = tree.items()
    if kind == "dict":
        return [name for key, item in content for name in (str(key), *keys_of(item))]
    return [name for item in content for name in keys_of(item)] if kind in ("list", "tuple") else []
