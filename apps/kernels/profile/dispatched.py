"""What one call gives Torch to do: operators by name as the dispatcher saw them, and memory for new tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from apps.kernels.evaluation import Metric
from apps.kernels.profile.names import metric

# Operations that move nothing: allocation, views, bookkeeping.
_FREE_OPERATIONS = frozenset(
    ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "set_", "resize_", "lift_fresh",
     "view", "reshape", "_unsafe_view", "_reshape_alias", "alias", "detach", "as_strided", "expand", "permute",
     "transpose", "t", "squeeze", "unsqueeze", "select", "slice", "unbind", "split", "chunk", "flatten", "unflatten",
     "stride", "size", "numel", "is_contiguous", "data_ptr")
)  # fmt: skip


@dataclass(frozen=True)
class Dispatched:
    """Operators of one call with their number, and the bytes of new tensors that they made (None if not counted)."""

    operators: Mapping[str, int] = field(default_factory=dict)
    allocated_bytes: int | None = None

    @property
    def operations(self) -> int:
        """Those that read or write tensors; `aten::add.Tensor` and `aten.add.Tensor` are one name."""
        total = 0
        for name, count in self.operators.items():
            plain = name.replace("::", ".").removeprefix("aten.").split(".")[0]
            total += 0 if plain in _FREE_OPERATIONS else count
        return total

    def metrics(self, prefix: str = "") -> list[Metric]:
        """Both as metrics; `prefix` says whose they are where they are not the candidate's."""
        found = [metric(f"{prefix}torch_operations_per_call", self.operations, "dispatcher")]
        if self.allocated_bytes is not None:
            found.append(metric(f"{prefix}torch_bytes_per_call", self.allocated_bytes, "dispatcher"))
        return found
