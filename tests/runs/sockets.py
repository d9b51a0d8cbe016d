"""A browser's end of the websockets, within the test's own event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.test import Client

from apps.people.models import Person
from pragma_web.asgi import application
from tests.patience import PATIENCE


class Refused(Exception):
    """The handshake was refused."""


class Socket:
    """The bare ASGI side of one websocket."""

    def __init__(self, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        bare, _, query = path.partition("?")
        scope = {
            "type": "websocket",
            "path": bare,
            "query_string": query.encode(),
            "headers": headers,
            "subprotocols": [],
        }
        self._application = ApplicationCommunicator(application, scope)

    async def connect(self) -> None:
        """Shake hands. Raises `Refused`."""
        await self._application.send_input({"type": "websocket.connect"})
        answer = await self._application.receive_output(PATIENCE)
        if answer["type"] != "websocket.accept":
            raise Refused

    async def receive(self) -> dict[str, Any]:
        """The next thing the server does."""
        output: dict[str, Any] = await self._application.receive_output(PATIENCE)
        return output

    async def send_text(self, text: str) -> None:
        """Send as a browser would."""
        await self._application.send_input({"type": "websocket.receive", "text": text})

    async def disconnect(self) -> None:
        """Leave."""
        await self._application.send_input({"type": "websocket.disconnect", "code": 1000})
        await self._application.wait(PATIENCE)


class Browser:
    """One connected socket; remembers what a page would."""

    def __init__(self, socket: Socket) -> None:
        self.socket = socket
        self.events: list[dict[str, Any]] = []
        self.drafts: dict[str, str] = {}
        self.status: dict[str, Any] = {}
        self.messages: list[dict[str, Any]] = []

    async def next(self) -> dict[str, Any]:
        """The next message, taken in as docs/api.md says."""
        output = await self.socket.receive()
        assert output["type"] == "websocket.send", output
        message: dict[str, Any] = json.loads(output["text"])
        self.messages.append(message)
        match message["type"]:
            case "events":
                self.events += message["events"]
            case "draft":
                kept = self.drafts.get(message["step"], "").encode("utf-16-le")[: 2 * message["offset"]]
                self.drafts[message["step"]] = kept.decode("utf-16-le") + message["text"]
            case "draft_end":
                self.drafts.pop(message["step"], None)
            case "status":
                self.status = message["run"]
            case "reset":
                self.events, self.drafts = [], {}
        return message

    async def until(self, kind: str) -> dict[str, Any]:
        """Take messages in until one of that type came."""
        async with asyncio.timeout(PATIENCE):
            while (message := await self.next())["type"] != kind:
                pass
        return message

    async def until_event(self, seq: int) -> None:
        """Take messages in until that event came."""
        async with asyncio.timeout(PATIENCE):
            while not self.events or self.events[-1]["seq"] < seq:
                await self.next()

    @property
    def numbers(self) -> list[int]:
        """The numbers of all events, in the order they came."""
        return [event["seq"] for event in self.events]

    async def send(self, **message: Any) -> None:
        """Send a command."""
        await self.socket.send_text(json.dumps(message))

    async def close_code(self) -> int:
        """The code the server closes with; messages before it are passed over."""
        async with asyncio.timeout(PATIENCE):
            while (message := await self.socket.receive())["type"] != "websocket.close":
                pass
        return int(message["code"])


def cookie_of(person: Person) -> str:
    """The session cookie of a person who has signed in."""
    client = Client()
    client.force_login(person)
    return f"sessionid={client.cookies['sessionid'].value}"


@asynccontextmanager
async def browser(
    path: str, person: Person | None = None, cookie: str = "", origin: str = "http://localhost", token: str = ""
) -> AsyncIterator[Browser]:
    """A socket to `path` with the person's session, or with a token as scripts send it."""
    if person is not None:
        cookie = await sync_to_async(cookie_of)(person)
    headers = [(b"origin", origin.encode()), (b"host", b"localhost"), (b"cookie", cookie.encode())]
    if token:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    socket = Socket(path, headers)
    await socket.connect()
    try:
        yield Browser(socket)
    finally:
        await socket.disconnect()
