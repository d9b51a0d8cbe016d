"""A receiver of webhooks: a real HTTP server on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from apps.notices import webhooks
from tests.patience import PATIENCE


@dataclass
class Receiver:
    """What came in, and what is answered."""

    url: str = ""
    status: int = 204
    location: str = ""
    calls: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Listens on 127.0.0.1 until the test is over. However long it takes to answer, it is waited for."""
    monkeypatch.setattr(webhooks, "SECONDS", PATIENCE)
    here = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            here.calls.append((self.path, dict(self.headers), body))
            self.send_response(here.status)
            if here.location:
                self.send_header("Location", here.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *words: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    here.url = f"http://localhost:{server.server_address[1]}/hook?team=a"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield here
    server.shutdown()
    server.server_close()
