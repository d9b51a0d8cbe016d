"""Where inputs are zero whatever the seed, as a triangular matrix is: that is their structure, and stays in all draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

Masks = list[torch.Tensor | None]


class Zeros:
    """For each input a mask of its lasting zeros; None where there are none, or all are, or others under another seed.

    `first` are the inputs under one seed; `again` draws them under another, and is asked once, where a mask must be kept.
    """

    def __init__(self, first: Sequence[torch.Tensor], again: Callable[[], Sequence[torch.Tensor]]) -> None:
        self._seen: Masks = [_some_zeros(tensor) for tensor in first]
        self._again = again
        self._lasting: Masks | None = None

    def kept(self, drawn: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """These inputs with zeros where they always are."""
        masks = self._masks()
        return [torch.where(mask, 0, one) if mask is not None else one for one, mask in zip(drawn, masks, strict=True)]

    def _masks(self) -> Masks:
        if self._lasting is None:
            others = self._again() if any(mask is not None for mask in self._seen) else ()
            self._lasting = [
                mask if mask is not None and torch.equal(mask, others[index] == 0) else None
                for index, mask in enumerate(self._seen)
            ]
        return self._lasting


def _some_zeros(tensor: torch.Tensor) -> torch.Tensor | None:
    """None where nothing is zero, or all of it, and for integers."""
    if not tensor.is_floating_point():
        return None
    mask = tensor == 0
    return mask if 0 < int(mask.sum()) < mask.numel() else None
