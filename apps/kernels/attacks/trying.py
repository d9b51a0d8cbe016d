"""Trying the attacks: in the build phase, in the judged one, and in that with its filter patched away."""

from __future__ import annotations

import ctypes
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from apps.kernels.attacks.attack import Attack, Layer, NotHeld, Outcome, Siege
from apps.kernels.attacks.table import ATTEMPTS, SIEGES
from apps.kernels.attacks.tools_inside import TOOLS
from apps.kernels.host.store import measurements_directory
from apps.kernels.jail import (
    ChannelBroken,
    ChannelTimeout,
    Limits,
    Zygote,
    cgroups,
    compilers,
    landlock,
    starts,
    syscalls,
)
from apps.kernels.jail.isolation import CODE_ROOT, another_user
from apps.kernels.judge.memory import SharedMemory
from apps.kernels.plain import Plain
from apps.kernels.temporary import temporary

ENTRY = "apps.kernels.inside.probe:run"
IMPORTS = "import ctypes, mmap, os, signal, socket, time\n"
ANSWER_SECONDS = 90.0
LIMITS = Limits(memory_bytes=4 << 30, cpu_seconds=120, wall_seconds=120.0)
PATCHED = "the same with the judged phase's filter patched away"


def try_all(
    zygote: Zygote, observe: Callable[[str], None] = lambda name: None, *, sieges: Sequence[Siege] | None = None
) -> tuple[Outcome, ...]:
    """Every attack in the zygote's mode, in the table's order; some ten seconds. `sieges` chooses among the slow ones."""
    zygote.start()
    with _targets(zygote) as targets:
        build = _became(zygote, targets, [a for a in ATTEMPTS if not a.judged_only], observe, phase="build")
        judged = _became(zygote, targets, ATTEMPTS, observe, phase="judged")
        starting = [a for a in ATTEMPTS if Layer.KEEPER in a.layers]
        patched = _became(zygote, targets, starting, observe, phase="patched")
    outcomes = [_outcome(attack, zygote.mode, build.get(attack), judged[attack]) for attack in ATTEMPTS]
    outcomes += [_of_patched(zygote.mode, patched)] if patched else []
    for siege in SIEGES if sieges is None else sieges:
        observe(siege.name)
        outcomes.append(_withstood(zygote, siege))
    return tuple(outcomes)


_LONGEST_SOCKET = 100  # characters of a path; the kernel takes some 107
Became = tuple[bool, str]  # whether it was contained, and what was seen


def _became(
    zygote: Zygote, targets: Plain, attacks: Sequence[Attack], observe: Callable[[str], None], *, phase: str
) -> dict[Attack, Became]:
    """What became of each. They share a jail; where one of them ends it, the others are tried without it."""
    if not attacks:
        return {}
    observe(f"{phase} phase" if len(attacks) > 1 else attacks[0].name)
    payload = {
        "code": TOOLS, "targets": targets, "close": phase == "judged", "attempts": [attack.code for attack in attacks]
    }  # fmt: skip
    inputs = SharedMemory("attacked", 4096)
    inputs.seal()
    try:
        with zygote.spawn(ENTRY, payload, limits=LIMITS, files=[inputs.fd]) as jailed:
            try:
                jailed.receive(ANSWER_SECONDS)
                if phase != "build":
                    jailed.end_build()
                jailed.send({})
                said = jailed.receive(ANSWER_SECONDS)["became"]
            except (ChannelBroken, ChannelTimeout):
                ended = jailed.wait(1)
                if len(attacks) == 1:
                    return {attacks[0]: (True, f"it {ended.words}")}
                said = None
    finally:
        inputs.close()
    if said is None:
        half = len(attacks) // 2
        first, second = attacks[:half], attacks[half:]
        return {
            a: b for part in (first, second) for a, b in _became(zygote, targets, part, observe, phase=phase).items()
        }
    return {attack: (how == "refused", str(what)) for attack, (how, what) in zip(attacks, said, strict=True)}


def _withstood(zygote: Zygote, siege: Siege) -> Outcome:
    with zygote.spawn(ENTRY, {"code": IMPORTS + siege.code}, limits=siege.limits) as jailed:
        try:
            seen, contained = siege.verdict(jailed), True
        except (NotHeld, ChannelBroken, ChannelTimeout) as problem:
            seen, contained = str(problem) or type(problem).__name__, False
    return Outcome(siege.area, siege.name, contained, _by(siege.layers, zygote.mode) if contained else "", seen)


def _outcome(attack: Attack, mode: str, build: Became | None, judged: Became) -> Outcome:
    contained = judged[0] and (build is None or build[0])
    _, seen = judged if build is None or not judged[0] else build
    return Outcome(attack.area, attack.name, contained, _by(attack.layers, mode) if contained else "", seen)


def _of_patched(mode: str, patched: dict[Attack, Became]) -> Outcome:
    escaped = [attack.name for attack, (contained, _) in patched.items() if not contained]
    seen = f"succeeded: {', '.join(escaped)}" if escaped else next(iter(patched.values()))[1]
    return Outcome("started programs", PATCHED, not escaped, "" if escaped else _by((Layer.KEEPER,), mode), seen)


def _by(layers: Sequence[Layer], mode: str) -> str:
    return ", ".join(layer.value for layer in layers if _in_force(layer, mode))


def _in_force(layer: Layer, mode: str) -> bool:
    if layer in (Layer.ROOT, Layer.PROCESSES, Layer.NETWORK, Layer.DISK):
        return mode != "light"
    if layer is Layer.LANDLOCK:
        return landlock.abi() > 0
    if layer is Layer.USER:
        return another_user(mode)[0]
    if layer is Layer.GROUP:
        return bool(cgroups.parents().memory)
    if layer is Layer.WATCH:
        return mode == "light" or not cgroups.parents().memory
    if layer is Layer.KEEPER:
        return syscalls.SUPPORTED and starts.supported()
    return layer is not Layer.SECCOMP or syscalls.SUPPORTED


@contextmanager
def _targets(zygote: Zygote) -> Iterator[Plain]:
    """What is attacked: a secret that everybody may read, sockets that anybody may connect to, the judge's memory."""
    token = f"secret_{secrets.token_hex(8)}"
    held = ctypes.create_string_buffer(token.encode(), 64)
    group = next(iter(cgroups.parents().directories), "/sys/fs/cgroup")
    with ExitStack() as stack:
        place = stack.enter_context(temporary("attacked", _data_directory()))
        place.chmod(0o777)
        (place / "secret").write_text(f"{token}\n")
        (place / "secret").chmod(0o644)
        path = place / "s"
        if len(str(path)) > _LONGEST_SOCKET:
            path = stack.enter_context(temporary("attacked")) / "s"
            path.parent.chmod(0o777)
        abstract = f"\0{place.name}"
        sockets = [stack.enter_context(s) for s in (
            socket.socket(), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        )]  # fmt: skip
        addresses: tuple[Any, ...] = (("127.0.0.1", 0), str(path), abstract, f"{abstract}d")
        for one, address in zip(sockets, addresses, strict=True):
            one.bind(address)
            if one.type == socket.SOCK_STREAM:
                one.listen()
        yield {
            "token": token, "judge": os.getpid(), "zygote": zygote.pid, "address": ctypes.addressof(held),
            "secret": str(place / "secret"), "outside": str(place / "written"), "home": str(Path.home()),
            "code": f"{CODE_ROOT}/apps/kernels/__init__.py", "group": f"{group}/cgroup.procs",
            "port": sockets[0].getsockname()[1], "unix": str(path), "abstract": abstract,
            "abstract_datagram": f"{abstract}d", "compilers": list(compilers().values()),
        }  # fmt: skip


def _data_directory() -> Path | None:
    """Where an installation's data would lie; None for the system's directory for temporary files."""
    for directory in (Path(CODE_ROOT) / "var", measurements_directory()):
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(directory, os.W_OK):
            return directory
    return None
