"""The jail: foreign code runs in forks of a zygote that see nothing of the host and die with the judge."""

from __future__ import annotations

from apps.kernels.jail.channel import Channel, ChannelBroken, ChannelForged, ChannelTimeout
from apps.kernels.jail.isolation import best_mode, compilers, isolation, isolation_level, refusal, required_level
from apps.kernels.jail.jailed import Ended, IsolationTooWeak, Jailed, JailFailed
from apps.kernels.jail.limits import Limits
from apps.kernels.jail.zygote import Zygote, ZygoteFailed

__all__ = [
    "Channel",
    "ChannelBroken",
    "ChannelForged",
    "ChannelTimeout",
    "Ended",
    "IsolationTooWeak",
    "JailFailed",
    "Jailed",
    "Limits",
    "Zygote",
    "ZygoteFailed",
    "best_mode",
    "compilers",
    "isolation",
    "isolation_level",
    "refusal",
    "required_level",
]
