"""`/healthz` of a process that serves no pages: one tiny HTTP answer on a unix socket or a loopback port.

`curl --unix-socket var/run/agents.sock http://pragma/healthz`, or `python manage.py health` for all of them. 200 while
the process does its part, 503 with the reason while it doesn't.
"""

from __future__ import annotations

import contextlib
import json
import logging
import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from apps.kernels.plain import Plain, to_plain

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Health:
    """Whether a process does its part, in words, and what else is known of it."""

    process: str
    ok: bool
    detail: str = ""
    facts: dict[str, Plain] = field(default_factory=dict)


Check = Callable[[], Health]


class _Handler(BaseHTTPRequestHandler):
    check: Check

    def do_GET(self) -> None:
        """Answer /healthz."""
        if self.path.rstrip("/") != "/healthz":
            self.send_error(404)
            return
        health = self.check()
        body = json.dumps(to_plain(health)).encode()
        self.send_response(200 if health.ok else 503)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: it is asked every few seconds."""

    def address_string(self) -> str:
        """A unix socket's client has no address."""
        return "local"


class _OnSocket(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


class _OnPort(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True


def serve_health(address: str, check: Check) -> None:
    """Answer at `address` from now on: a path (unix socket) or HOST:PORT. Nothing is served at an empty address.

    A place that can't be had is logged and no reason to stop.
    """
    if not address:
        return
    handler = type("Handler", (_Handler,), {"check": staticmethod(check)})
    try:
        server = _server(address, handler)
    except OSError as problem:
        log.warning("No health page at %s: %s", address, problem)
        return
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()


def _server(address: str, handler: type[BaseHTTPRequestHandler]) -> socketserver.BaseServer:
    if "/" not in address and ":" in address:
        host, _, port = address.rpartition(":")
        return _OnPort((host, int(port)), handler)
    path = Path(address)
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return _OnSocket(address, handler)
