"""What an attack is, what may hold it, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from apps.kernels.jail import Jailed, Limits

ROOMY = Limits(memory_bytes=4 << 30, cpu_seconds=30, wall_seconds=30.0)


class Layer(Enum):
    """One thing that holds foreign code, in words for the table."""

    ROOT = "a root of its own"
    PROCESSES = "process namespace"
    NETWORK = "network namespace"
    LANDLOCK = "Landlock"
    SECCOMP = "system-call filter"
    KEEPER = "the keeper's no"
    USER = "another user"
    RIGHTS = "no capabilities, no new privileges"
    SEALS = "sealed memory file"
    CLEAN = "started with nothing but its own"
    LIMIT = "resource limit"
    GROUP = "control group"
    WATCH = "the keeper looks"
    DISK = "size of the tmpfs"
    JUDGE = "the judge's own bounds"
    TREE = "its whole tree is killed"


@dataclass(frozen=True)
class Attack:
    """One attack. `code` is the body of a function; whatever it returns is what it got away with, raising is failing.

    `layers` are what may hold it, the first first; those that this host doesn't have are not named in its outcome.
    Tried in the build phase and in the judged one, unless `judged_only`.
    """

    area: str
    name: str
    code: str
    layers: tuple[Layer, ...]
    judged_only: bool = False


@dataclass(frozen=True)
class Siege:
    """An attack that uses something up or outlives its judgement: it has a jail to itself and the judge says how it went.

    `verdict` gets the jailed process once its code runs, and returns what was seen; it raises `NotHeld` if the attack
    succeeded.
    """

    area: str
    name: str
    code: str
    layers: tuple[Layer, ...]
    verdict: Callable[[Jailed], str]
    limits: Limits = ROOMY


class NotHeld(Exception):
    """An attack got away with something; the message says with what."""


@dataclass(frozen=True)
class Outcome:
    """What became of an attack: whether it was contained, by which layers in force here, and what was seen."""

    area: str
    name: str
    contained: bool
    by: str
    seen: str
