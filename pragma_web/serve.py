"""python -m pragma_web.serve FD: the web process on a listening socket that the supervisor keeps open."""

from __future__ import annotations

import socket
import sys

import uvicorn

from pragma_web import logs

# Open websockets would otherwise hold a stop for as long as somebody looks at a page; they reconnect by themselves.
STOP_SECONDS = 3


def main(descriptor: int) -> None:
    """Serve until told to stop."""
    logs.set_up()
    config = uvicorn.Config(
        "pragma_web.asgi:application",
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=STOP_SECONDS,
        ws_max_size=1 << 16,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main(int(sys.argv[1]))
