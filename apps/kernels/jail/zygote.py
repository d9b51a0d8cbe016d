"""The judge's side of the zygote: start it once, spawn any number of jailed processes from it.

with Zygote() as zygote:
    with zygote.spawn("apps.kernels.inside.oracle:main", {...}, limits=Limits()) as jailed:
        answer = jailed.receive(10.0)
"""

from __future__ import annotations

import itertools
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from apps.kernels.jail import cgroups
from apps.kernels.jail.cell import MODES
from apps.kernels.jail.isolation import CODE_ROOT, another_user, best_mode, readable_prefixes
from apps.kernels.jail.jailed import Jailed
from apps.kernels.jail.limits import Limits
from apps.kernels.plain import Plain, to_plain
from apps.kernels.temporary import TemporaryPlace

BOOT = "import sys; sys.path.append(sys.argv[1]); from apps.kernels.jail.nursery import main; "
BOOT += "main(int(sys.argv[2]), sys.argv[3], bare=sys.argv[4] == 'bare')"
START_SECONDS = 120.0
FORK_SECONDS = 20.0
FIRST_OWNER, OWNERS = 62000, 3000  # users of jailed processes where the judge is root; none of them exists
_numbers = itertools.count(secrets.randbelow(OWNERS))


class ZygoteFailed(Exception):
    """The zygote did not start, or is gone; the message says why."""


class Zygote:
    """A process with torch imported that forks jailed processes; usable for many judgements and from any thread.

    `mode` is root, user or light (see `isolation.best_mode`); None finds out what this host can do. A `bare` one does
    without torch and starts in a tenth of a second: for jails that compute nothing.
    """

    def __init__(self, mode: str | None = None, *, bare: bool = False) -> None:
        if mode is not None and mode not in MODES:
            raise ValueError(f"no way to jail is called {mode!r}")
        self._wanted_mode = mode
        self._bare = bare
        self.mode = mode or "light"
        self.torch = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()
        self._place: TemporaryPlace | None = None
        self._preloaded: set[str] = set()
        self.read_only = readable_prefixes()

    def start(self) -> Zygote:
        """Start it, if it isn't running; importing torch takes a second or two. Raises `ZygoteFailed`."""
        if self.alive:
            return self
        self.close()  # of one that died
        self.mode = self.planned_mode
        cgroups.sweep()
        self._place = TemporaryPlace("jail")
        self._place.path.chmod(0o711)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-I", "-c", BOOT, CODE_ROOT, str(theirs.fileno()), str(self._place.path)]
        command.append("bare" if self._bare else "torch")
        self._process = subprocess.Popen(
            command,
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            cwd="/",
            start_new_session=True,
        )
        theirs.close()
        self._control = ours
        self._preloaded = set()
        ready = self._reply(START_SECONDS)
        self.torch = str(ready.get("torch", ""))
        if ready.get("threads") != 1:
            raise ZygoteFailed("importing torch started threads; a fork of such a process may hang")
        return self

    @property
    def planned_mode(self) -> str:
        """The way it jails, or will once it is started."""
        return self._wanted_mode or best_mode()

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._process is not None and self._process.poll() is None and self._control is not None

    @property
    def pid(self) -> int | None:
        """The zygote's process id."""
        return self._process.pid if self._process else None

    def preload(self, modules: Sequence[str]) -> None:
        """Import more modules once, so that no jailed process pays for them (torch.compile's take 2.5 s)."""
        wanted = [name for name in modules if name not in self._preloaded]
        if not wanted:
            return
        with self._lock:
            self._send({"preload": wanted}, [])
            self._reply(START_SECONDS)
            self._preloaded.update(wanted)

    def spawn(
        self,
        entry: str,
        payload: Plain,
        *,
        limits: Limits | None = None,
        files: Sequence[int] = (),
        perturb: int = 0,
    ) -> Jailed:
        """Fork, lock in, and run `entry` ("module:function") with (channel, payload).

        `files` are descriptors it inherits, found as `channel.files`. It starts in the build phase; its code ends that
        itself with `inside.phases.close_building()`, which the judge verifies from outside.
        """
        self.start()
        limits = limits or Limits()
        number = next(_numbers)
        owner = FIRST_OWNER + number % OWNERS
        assert self._place is not None
        place = str(self._place.path / str(number))
        Path(place).mkdir(mode=0o700)
        if self.mode == "light":
            owner = owner if another_user("light")[0] else -1
            os.chown(place, owner, owner)
        channel, their_channel = socket.socketpair()
        status, their_status = socket.socketpair()
        output, their_output = os.pipe()
        group = cgroups.make(limits, self._process.pid if self._process else 0, number)
        job = {
            "entry": entry,
            "mode": self.mode,
            "place": place,
            "owner": owner,
            "read_only": list(self.read_only),
            "limits": to_plain(limits),
            "perturb": perturb,
            "directories": list(group.directories),
            "groups": len(group.entrances),
            "events": group.events >= 0,
        }
        doors = [*group.entrances, *((group.events,) if group.events >= 0 else ())]
        handed = [their_channel.fileno(), their_status.fileno(), their_output, *doors, *files]
        try:
            with self._lock:
                self._send(job, handed)
                reply = self._reply(FORK_SECONDS)
            if "keeper" not in reply:
                raise ZygoteFailed(f"the zygote could not fork: {reply.get('error', reply)}")
        except ZygoteFailed:
            channel.close()
            status.close()
            os.close(output)
            cgroups.remove(group.directories)
            raise
        finally:
            their_channel.close()
            their_status.close()
            os.close(their_output)
            group.close()
        jailed = Jailed(int(reply["keeper"]), channel, status, output, place, self.mode, limits)
        jailed.begin(payload)
        return jailed

    def close(self) -> None:
        """End it and everything it forked."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stderr:
                self._process.stderr.close()
            self._process = None
            cgroups.sweep()  # of a zygote that was killed
        if self._place is not None:
            self._place.remove()
            self._place = None

    def __enter__(self) -> Zygote:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, message: Plain, descriptors: list[int]) -> None:
        assert self._control is not None
        try:
            socket.send_fds(self._control, [json.dumps(message).encode()], descriptors)
        except OSError as problem:
            raise ZygoteFailed(f"the zygote is gone: {problem}") from None

    def _reply(self, timeout: float) -> dict[str, Plain]:
        assert self._control is not None
        self._control.settimeout(timeout)
        try:
            data = self._control.recv(1 << 16)
        except OSError as problem:
            if self._process is not None:
                self._process.kill()  # an answer that came late would be taken for the next one's
            raise ZygoteFailed(f"the zygote does not answer: {problem}") from None
        if not data:
            said = ""
            if self._process and self._process.stderr:
                said = self._process.stderr.read().decode("utf-8", "replace").strip()[-600:]
            raise ZygoteFailed(f"the zygote ended: {said or 'no reason given'}")
        reply: dict[str, Plain] = json.loads(data)
        return reply
