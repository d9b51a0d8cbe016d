"""Attacks on the jail, tried for real on this host: what each tries, whether it is contained, and by what."""

from __future__ import annotations

from apps.kernels.attacks.attack import Attack, Layer, Outcome
from apps.kernels.attacks.table import ATTEMPTS, SIEGES
from apps.kernels.attacks.trying import try_all

__all__ = ["ATTEMPTS", "SIEGES", "Attack", "Layer", "Outcome", "try_all"]
