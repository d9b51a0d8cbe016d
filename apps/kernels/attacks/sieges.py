"""Attacks that use something up, flood the judge, or try to outlive it. Each has a jail to itself."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from apps.kernels.attacks.attack import Layer, NotHeld, Siege
from apps.kernels.jail import ChannelBroken, ChannelForged, ChannelTimeout, Jailed, Limits
from apps.kernels.jail.tree import descendants
from apps.kernels.judge.artefacts import collect

MIB, GIB = 1 << 20, 1 << 30
SMALL = Limits(memory_bytes=4 * GIB, cpu_seconds=60, wall_seconds=30.0, processes=64, files=128, disk_bytes=64 * MIB)
TIGHT = Limits(memory_bytes=2 * GIB, cpu_seconds=60, wall_seconds=30.0, disk_bytes=64 * MIB)
GONE_SECONDS = 5.0


def _out_of_memory(jailed: Jailed) -> str:
    ended = jailed.wait(20)
    if not ended.out_of_memory:
        raise NotHeld(f"it {ended.words}")
    return ended.words


def _refused(jailed: Jailed) -> str:
    """The code says at what it came to an end."""
    try:
        said = jailed.receive(25)
    except ChannelBroken:
        ended = jailed.wait(5)
        if not ended.over:
            raise NotHeld(f"it {ended.words}") from None
        return ended.words
    if "got" in said:
        raise NotHeld(str(said["got"]))
    return str(said.get("end"))


def _copied(jailed: Jailed) -> str:
    """The judge copies the directory and removes it without losing itself."""
    seen = _refused(jailed)
    if jailed.ended is None:
        collect(jailed)
    jailed.close()
    return f"{seen}; copied and removed"


def _timed_out(jailed: Jailed) -> str:
    with contextlib.suppress(ChannelTimeout, ChannelBroken):
        jailed.receive(20)
    ended = jailed.wait(0.5)
    if not ended.timed_out:
        raise NotHeld(f"it {ended.words}")
    return ended.words


def _killed(jailed: Jailed) -> str:
    ended = jailed.wait(20)
    if ended.code == 0:
        raise NotHeld("it went on")
    return ended.words


def _drained(jailed: Jailed) -> str:
    if jailed.receive(25).get("done") is not True or len(jailed.output) > 64 << 10:
        raise NotHeld(f"{len(jailed.output)} bytes kept")
    return f"{len(jailed.output) >> 10} KiB kept"


def _no_message(jailed: Jailed) -> str:
    try:
        jailed.receive(10)
    except ChannelForged as forged:
        return str(forged)[:60]
    except (ChannelBroken, ChannelTimeout):
        return "no message came"
    raise NotHeld("the judge took it")


def _gone(jailed: Jailed) -> str:
    """Whatever it has started is gone soon after its judgement ends."""
    jailed.receive(20)
    time.sleep(0.3)
    processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    try:
        below = descendants(jailed.keeper, processes)
        jailed.close()
        deadline = time.monotonic() + GONE_SECONDS
        while any(_lives(pid) for pid in below):
            if time.monotonic() > deadline:
                raise NotHeld(f"{sum(map(_lives, below))} of {len(below)} processes live on")
            time.sleep(0.02)
    finally:
        os.close(processes)
    return f"{len(below)} processes, none left"


def _alone(jailed: Jailed) -> str:
    """Once it is judged nothing lives beside it, wherever it has gone."""
    said = jailed.receive(20)
    strays = jailed.end_build()
    processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
    try:
        left = [pid for pid in descendants(jailed.keeper, processes, living=True) if pid != jailed.pid]
    finally:
        os.close(processes)
    if left or not strays:
        raise NotHeld(f"{len(left)} beside it, {strays} found, of {said}")
    return f"{strays} found and killed"


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


_UNTIL = """
n = 0
try:
    while n < {most}:
        {step}
        n += 1
    channel.send({{'got': '{most} ' + {what!r}}})
except BaseException as end:
    {free}
    channel.send({{'end': f'{{type(end).__name__}} after {{n}}'}})
"""


def _until(step: str, most: int, what: str, free: str = "pass") -> str:
    return _UNTIL.format(step=step, most=most, what=what, free=free)


_DAEMONS = (
    "for _ in range(3):\n    if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0:\n"
    "            signal.signal(signal.SIGTERM, signal.SIG_IGN); channel.close(); time.sleep(600)\n        os._exit(0)\n"
    "time.sleep(0.2)\nchannel.send({'up': True})\ntime.sleep(600)"
)
SIEGES = (
    Siege("exhaustion", "memory, in one process", "x = bytearray(16 << 30)", (Layer.LIMIT, Layer.GROUP), _out_of_memory),
    Siege(
        "exhaustion", "memory, in many processes",
        "for _ in range(12):\n    if os.fork() == 0:\n        x = b'x' * (224 << 20); time.sleep(600)\n"
        "_, how = os.wait()\nchannel.send({'end': f'a child ended with {how}'})",
        (Layer.GROUP, Layer.WATCH), _refused, TIGHT,
    ),
    Siege(
        "exhaustion", "disk", "os.mkdir('d')\nx = bytes(1 << 20)\n" + _until("open(f'd/{n}', 'wb').write(x)", 4096, "MiB"),
        (Layer.DISK, Layer.WATCH), _refused, SMALL,
    ),
    Siege(
        "exhaustion", "disk, in deleted files",
        "x, kept = bytes(1 << 20), []\n"
        + _until("f = open('f', 'wb'); kept.append(f); os.unlink('f'); [f.write(x) for _ in range(32)]", 100, "x 32 MiB"),
        (Layer.DISK, Layer.WATCH), _refused, SMALL,
    ),
    Siege("exhaustion", "inodes",
          _until("open(f'{n}', 'x').close()", 400000, "files"), (Layer.DISK, Layer.WATCH), _refused, SMALL),
    Siege(
        "exhaustion", "directories in directories", _until("os.mkdir('d'); os.chdir('d')", 4000, "deep, and went on")
        .replace("'got'", "'end'")
        + "time.sleep(600)\n", (Layer.JUDGE, Layer.WATCH), _copied, SMALL,
    ),
    Siege(
        "exhaustion", "one file", "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nx = bytes(16 << 20)\n"
        + _until("open('f', 'ab').write(x)", 4096, "x 16 MiB"), (Layer.LIMIT, Layer.DISK, Layer.WATCH), _refused, SMALL,
    ),
    Siege(
        "exhaustion", "processes", _until("if os.fork() == 0: time.sleep(600)", 500, "processes"),
        (Layer.KEEPER, Layer.GROUP, Layer.LIMIT), _refused, SMALL,
    ),
    Siege(
        "exhaustion", "a fork bomb", "channel.send({'end': 'let loose'})\nwhile True:\n    try: os.fork()\n"
        "    except OSError: time.sleep(0.01)", (Layer.TREE, Layer.KEEPER, Layer.GROUP, Layer.LIMIT), _gone, SMALL,
    ),
    Siege(
        "exhaustion", "threads", "import threading\n"
        + _until("threading.Thread(target=time.sleep, args=(600,), daemon=True).start()", 5000, "threads"),
        (Layer.GROUP, Layer.LIMIT), _refused, SMALL,
    ),
    Siege("exhaustion", "descriptors", "kept = []\n" + _until("kept.append(os.pipe())", 5000, "pipes", "kept.clear()"),
          (Layer.LIMIT,), _refused, SMALL),
    Siege("exhaustion", "processor time", "while True: pass", (Layer.LIMIT,), _timed_out,
          Limits(memory_bytes=4 * GIB, cpu_seconds=1, wall_seconds=30.0)),
    Siege("exhaustion", "time", "time.sleep(600)", (Layer.JUDGE, Layer.KEEPER), _timed_out,
          Limits(memory_bytes=4 * GIB, wall_seconds=1.0)),
    Siege("exhaustion", "a flood on stdout", "for _ in range(3000): print('x' * 10000)\nchannel.send({'done': True})",
          (Layer.JUDGE,), _drained),
    Siege("exhaustion", "a message that claims 4 GB", "os.write(channel.fileno(), b'\\xff' * 64)\ntime.sleep(5)",
          (Layer.JUDGE,), _no_message),
    Siege("exhaustion", "a message nested without end",
          "from apps.kernels.jail.channel import HEADER\nx = b'[' * 100000\n"
          "os.write(channel.fileno(), HEADER.pack(len(x), 0) + x)\ntime.sleep(5)", (Layer.JUDGE,), _no_message),
    Siege("kernel", "32-bit calls", "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\n"
          "m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))\n"
          "ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()\nos._exit(0)",
          (Layer.SECCOMP,), _killed),
    Siege("outliving", "daemons", _DAEMONS, (Layer.TREE, Layer.PROCESSES), _gone),
    Siege("outliving", "orphans that work while it is frozen", _DAEMONS, (Layer.KEEPER,), _alone),
    Siege("outliving", "siblings that work while it is frozen",
          "libc = ctypes.CDLL(None)\n"
          "if os.fork() == 0:\n    if libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0) == 0: time.sleep(600)\n    os._exit(0)\n"
          "if os.getpid() > 1 and libc.syscall(56, 0x8000 | 17, 0, 0, 0, 0) == 0: time.sleep(600)\n"
          "time.sleep(0.2)\nchannel.send({'up': True})\ntime.sleep(600)", (Layer.KEEPER,), _alone),
)  # fmt: skip
