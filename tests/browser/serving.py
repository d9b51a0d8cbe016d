"""The product's own ASGI application, sockets and static files included, served from a thread of this process."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tests.patience import PATIENCE, until

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def installed_browser() -> str | None:
    """An installed Chromium or Chrome, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@contextmanager
def listening(port: int = 0) -> Iterator[socket.socket]:
    """A socket on this machine; port 0 takes a free one."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        yield listener


@contextmanager
def served(port: int = 0) -> Iterator[str]:
    """The address of a server that runs until the block ends."""
    from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler

    from pragma_web.asgi import application

    config = uvicorn.Config(
        ASGIStaticFilesHandler(application), lifespan="off", log_level="error", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    with listening(port) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started)
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
