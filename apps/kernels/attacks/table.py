"""All attacks, in the order in which the table shows them."""

from __future__ import annotations

from apps.kernels.attacks.compiling import COMPILING
from apps.kernels.attacks.kernel import KERNEL
from apps.kernels.attacks.reaching import REACHING
from apps.kernels.attacks.reading import READING
from apps.kernels.attacks.sieges import SIEGES

ATTEMPTS = (*READING, *REACHING, *KERNEL, *COMPILING)
__all__ = ["ATTEMPTS", "SIEGES"]
