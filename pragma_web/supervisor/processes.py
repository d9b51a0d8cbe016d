"""The processes of one machine, each with its command and the part of the environment it may see."""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis

from pragma_web.supervisor import broker
from pragma_web.supervisor.environment import (
    ADDRESS,
    BROKER,
    DATABASE,
    KEY,
    MACHINE,
    MAIL,
    METRICS,
    MODELS,
    WEB,
    chosen,
)


@dataclass(frozen=True)
class Process:
    """How to run one process. `ready` is asked after its start by whoever must wait for it."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]
    files: tuple[int, ...] = ()
    ready: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class Installation:
    """Where this installation lives and what was asked of it. `environment` is that of whoever started it."""

    base: Path
    var: Path
    run: Path
    environment: dict[str, str]
    listener: socket.socket
    host_name: str

    @property
    def broker_url(self) -> str:
        """REDIS_URL as given, else the embedded broker's socket."""
        return self.environment.get("REDIS_URL") or f"unix://{self.run / 'broker.sock'}"

    @property
    def address(self) -> str:
        """Where people reach it: PRAGMA_ADDRESS, else where it listens."""
        host, port = self.listener.getsockname()[:2]
        shown = "localhost" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host  # noqa: S104
        return self.environment.get("PRAGMA_ADDRESS") or f"http://{shown}:{port}"


def own_host_name(environment: dict[str, str]) -> str:
    """What this machine is called as a host: PRAGMA_STATION, else its own name made fit."""
    wanted = environment.get("PRAGMA_STATION") or socket.gethostname()
    return re.sub(r"[^A-Za-z0-9_-]+", "-", wanted).strip("-")[:40] or "this-machine"


def embedded_broker(here: Installation) -> Process | None:
    """The broker, unless REDIS_URL names one that somebody else runs. Raises `broker.NoBroker`."""
    if here.environment.get("REDIS_URL"):
        return None
    command = broker.server_command(broker.server_program(), here.run / "broker.sock", here.var / "broker")
    return Process("broker", tuple(command), chosen(here.environment, MACHINE), ready=lambda: answers(here.broker_url))


def product(here: Installation) -> list[Process]:
    """Web, agents worker, server worker and station."""
    return [
        Process(
            "web",
            (sys.executable, "-m", "pragma_web.serve", str(here.listener.fileno())),
            _sees(here, DATABASE, BROKER, KEY, WEB, ADDRESS, METRICS),
            files=(here.listener.fileno(),),
        ),
        _worker(here, "agents", _sees(here, DATABASE, BROKER, KEY, MODELS)),
        _worker(here, "server", _sees(here, DATABASE, BROKER, KEY, MAIL, ADDRESS)),  # the key: links and signatures
        Process("station", _station(here), _sees(here, BROKER)),
    ]


def first_run(here: Installation, address: str) -> Process:
    """Launches a first run as soon as a host can judge; does nothing where there is a run."""
    command = (sys.executable, "manage.py", "first_run", "--address", address)
    return Process("first-run", command, _sees(here, DATABASE, BROKER, KEY))


def _station(here: Installation) -> tuple[str, ...]:
    state, health = str(here.var / "station"), str(here.run / "station.sock")
    return (sys.executable, "-m", "apps.station", "--name", here.host_name, "--state", state, "--health", health)


def _worker(here: Installation, role: str, sees: dict[str, str]) -> Process:
    health = str(here.run / f"{role}.sock")
    return Process(role, (sys.executable, "-m", "pragma_web.worker", role, "--health", health), sees)


def _sees(here: Installation, *parts: tuple[str, ...]) -> dict[str, str]:
    own = {"REDIS_URL": here.broker_url, "PRAGMA_VAR": str(here.var), "PRAGMA_ADDRESS": here.address}
    everything = here.environment | own
    secret = here.var / "secret"
    if "PRAGMA_KEY" not in everything and secret.exists():
        everything["PRAGMA_KEY"] = secret.read_text().strip()
    names = tuple(name for part in (MACHINE, *parts) for name in part)
    return chosen(everything, names) | {"PYTHONPATH": str(here.base), "PYTHONUNBUFFERED": "1"}


def answers(url: str) -> bool:
    """Whether a broker answers there."""
    try:
        with redis.Redis.from_url(url, socket_timeout=1.0, socket_connect_timeout=1.0) as server:
            return bool(server.ping())
    except (redis.RedisError, OSError):
        return False


def listen(host: str, port: str | None) -> socket.socket:
    """The web's listening socket: at `port` where given, else at 8000 or the next free one.

    The supervisor keeps it open, so that a web process that is started anew answers at the same place and nobody who
    connects meanwhile is refused. Raises OSError where the port can't be had.
    """
    ports = [int(port)] if port else range(8000, 8100)
    last: OSError | None = None
    for number in ports:
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
        except OSError as problem:
            listener.close()
            last = problem
            continue
        listener.listen(1024)
        os.set_inheritable(listener.fileno(), True)
        return listener
    raise OSError(f"port {ports[0]} on {host} can't be had: {last.strerror if last else 'no port'}; set PRAGMA_PORT")
