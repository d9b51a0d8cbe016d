"""A server that speaks OpenAI's protocol over real sockets and answers by a script, well or badly.

Each request takes the next `Reply` of the script; the last one is repeated. What came is kept in `requests`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.patience import PATIENCE

ECHO = "{key}"  # in any text: the Authorization header as it came
Counts = tuple[int, int]


@dataclass(frozen=True)
class Reply:
    """One answer. `misbehaviour` is empty, or what goes wrong: hang (after the text), deaf (before any), cut, malformed,
    error-event, trickle (a piece every 50 ms, without end), html, or a status code's digits."""

    text: str = ""
    reasoning: str = ""
    misbehaviour: str = ""
    retry_after: str | None = None
    body: str = ""
    counts: Counts | None = (100, 50)
    finish: str = "stop"
    piece: int = 40  # characters


@dataclass(frozen=True)
class Request:
    """What was asked."""

    body: dict[str, Any]
    headers: dict[str, str]
    at: float

    @property
    def system(self) -> str:
        """The first message: who is asked."""
        return str(self.body["messages"][0]["content"])

    @property
    def prompt(self) -> str:
        """The last message."""
        return str(self.body["messages"][-1]["content"])


@dataclass
class Script:
    """What the server does next, and what became of it."""

    replies: Sequence[Reply] = ()
    answer: Callable[[Request], Reply] | None = None  # asked from several threads at once
    requests: list[Request] = field(default_factory=list)
    gone: list[float] = field(default_factory=list)  # when a caller was found to have left
    silent: int = 0  # how many callers are kept waiting: all was said to them that will be
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, request: Request) -> Reply:
        with self.lock:
            self.requests.append(request)
            answer, scripted = self.answer, self.replies[min(len(self.requests), len(self.replies)) - 1 :][:1]
        return answer(request) if answer is not None else scripted[0]

    @contextmanager
    def silence(self) -> Iterator[None]:
        """A caller waits for nothing."""
        with self.lock:
            self.silent += 1
        try:
            yield
        finally:
            with self.lock:
                self.silent -= 1

    def play(self, *replies: Reply) -> None:
        """Forget what was; these come next."""
        with self.lock:
            self.replies, self.answer, self.requests, self.gone = replies, None, [], []

    def play_by(self, answer: Callable[[Request], Reply]) -> None:
        """Forget what was; from now on each request is answered by this."""
        with self.lock:
            self.replies, self.answer, self.requests, self.gone = (), answer, [], []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def log_message(self, *arguments: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = self.script.next(Request(body, dict(self.headers.items()), time.monotonic()))
        self.close_connection = True
        with suppress(BrokenPipeError, ConnectionResetError):
            self._reply(reply, body)
            return
        self.script.gone.append(time.monotonic())

    def _reply(self, reply: Reply, body: dict[str, Any]) -> None:
        if reply.misbehaviour.isdigit():
            return self._whole(
                int(reply.misbehaviour), reply.body or json.dumps({"error": {"message": reply.text}}), reply
            )
        if reply.misbehaviour == "html":
            return self._whole(200, "<html><body>Welcome</body></html>", reply)
        if reply.misbehaviour == "deaf":
            return self._wait_until_gone(b"")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for delta in _deltas(reply):
            self._event(_chunk(body["model"], delta))
        return self._ending(reply, body)

    def _ending(self, reply: Reply, body: dict[str, Any]) -> None:
        if reply.misbehaviour == "cut":
            return None
        if reply.misbehaviour == "hang":
            return self._wait_until_gone(b"")
        if reply.misbehaviour == "trickle":
            event = f"data: {json.dumps(_chunk(body['model'], {'content': '.'}))}\n\n"
            return self._wait_until_gone(event.encode())
        if reply.misbehaviour == "malformed":
            return self._raw("{this is no json")
        if reply.misbehaviour == "error-event":
            return self._event({"error": {"message": self._echoed(reply.body), "code": 503}})
        self._event(_chunk(body["model"], {}, reply.finish))
        if reply.counts is not None:
            asked, answered = reply.counts
            usage = {"prompt_tokens": asked, "completion_tokens": answered, "total_tokens": asked + answered}
            self._event(_chunk(body["model"], {}) | {"choices": [], "usage": usage})
        return self._raw("[DONE]")

    def _wait_until_gone(self, keepalive: bytes) -> None:
        """Say nothing more, or the same for ever, until the caller has left (or all patience has an end)."""
        self.connection.settimeout(0.05)
        until = time.monotonic() + 2 * PATIENCE
        with self.script.silence():
            while time.monotonic() < until:
                if keepalive:
                    self.wfile.write(keepalive)
                try:
                    if self.connection.recv(1) == b"":
                        raise ConnectionResetError
                except TimeoutError:
                    continue

    def _whole(self, status: int, text: str, reply: Reply) -> None:
        data = self._echoed(text).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json" if status != 200 else "text/html")
        self.send_header("content-length", str(len(data)))
        self.send_header("x-echo", self.headers.get("authorization", ""))
        if reply.retry_after is not None:
            self.send_header("Retry-After", reply.retry_after)
        self.end_headers()
        self.wfile.write(data)

    def _event(self, data: dict[str, Any]) -> None:
        self._raw(self._echoed(json.dumps(data)))

    def _raw(self, text: str) -> None:
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def _echoed(self, text: str) -> str:
        return text.replace(ECHO, self.headers.get("authorization", "").removeprefix("Bearer "))


def _deltas(reply: Reply) -> Iterator[dict[str, str]]:
    yield {"role": "assistant", "content": ""}
    for kind, text in (("reasoning_content", reply.reasoning), ("content", reply.text)):
        for at in range(0, len(text), reply.piece):
            yield {kind: text[at : at + reply.piece]}


def _chunk(model: str, delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}


class ModelServer:
    """The server on a port of its own; `address` is what settings take."""

    def __init__(self) -> None:
        self.script = Script()
        handler = type("Handler", (_Handler,), {"script": self.script})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
