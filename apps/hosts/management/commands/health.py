"""manage.py health: what each process of this machine says of itself; exit code 1 if one doesn't do its part."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

PROCESSES = ("supervisor", "agents", "server", "station")
SECONDS = 3.0


class _OnSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("pragma", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(str(self._path))


class Command(BaseCommand):
    """Asks every process of this installation for its /healthz."""

    help = "Show what each process of this installation says of its health."

    def add_arguments(self, parser: CommandParser) -> None:
        """Machine-readable output."""
        parser.add_argument("--json", action="store_true", help="one JSON object, by process")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print, and leave with 1 if anything is wrong."""
        found = {name: _asked(_OnSocket(settings.RUN / f"{name}.sock")) for name in PROCESSES}
        found["web"] = _web()
        if options["json"]:
            self.stdout.write(json.dumps(found))
        else:
            for name, said in found.items():
                self.stdout.write(f"{name:11} {'ok' if said['ok'] else 'NOT OK'}  {said['detail']}".rstrip())
        if not all(said["ok"] for said in found.values()):
            raise CommandError("Not everything does its part.")


def _web() -> dict[str, Any]:
    try:
        address = str(json.loads((settings.RUN / "supervisor.lock").read_text())["address"])
    except (OSError, ValueError, KeyError):
        return {"ok": False, "detail": "no supervisor has said where it answers"}
    host, _, port = address.removeprefix("http://").rstrip("/").rpartition(":")
    return _asked(http.client.HTTPConnection(host.strip("[]"), int(port), timeout=SECONDS))


def _asked(connection: http.client.HTTPConnection) -> dict[str, Any]:
    """What it says, with `ok` and `detail` always there."""
    try:
        with closing(connection):
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            said = json.loads(answer.read())
    except (OSError, http.client.HTTPException, ValueError) as problem:
        return {"ok": False, "detail": f"does not answer ({problem})"}
    return {"detail": _words(said), **said, "ok": answer.status == 200}


def _words(said: dict[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in said.items() if key in ("database", "broker"))
