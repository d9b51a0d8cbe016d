"""The websockets of runs (docs/api.md). They ask `may` on connect and for each message, and send what the tailer has."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast
from urllib.parse import parse_qs

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.auth import HASH_SESSION_KEY
from django.utils.crypto import constant_time_compare

from apps.people import audit, tokens
from apps.people.models import Person
from apps.people.permissions import Action, may
from apps.runs import steering, wire
from apps.runs.live import measures
from apps.runs.live.subscription import Subscription, TooSlow
from apps.runs.live.tailer import tailer
from apps.runs.models import Run
from apps.runs.refusals import Refused

SIGNED_OUT, NOT_ALLOWED, NO_SUCH_RUN, SLOW = 4401, 4403, 4404, 4408
_PERSON_FRESH_FOR = 10.0  # seconds until a person's rights and session are read again, give or take a fifth
_LARGEST_MESSAGE = 20_000  # characters from a client


class _Socket(AsyncWebsocketConsumer):  # type: ignore[misc]
    """What both sockets share: the person, and a task that sends."""

    channel_layer_alias = "none"  # nothing is sent through a channel layer, so no socket needs a place in one
    person: Person | None = None
    _stale_at = 0.0
    _sending: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Accept first: a browser sees the code of a close, but not the reason of a refused handshake."""
        self.subscription = Subscription()
        await self.accept()
        await self.fresh_person()
        if self.person is None:
            await self.close(SIGNED_OUT)
        else:
            measures.CLIENTS.labels(type(self).__name__).inc()
            self._sending = asyncio.create_task(self._guarded())

    async def disconnect(self, code: int) -> None:
        """Stop sending."""
        if self._sending is not None:
            measures.CLIENTS.labels(type(self).__name__).dec()
            self._sending.cancel()
            with suppress(asyncio.CancelledError):
                await self._sending

    @property
    def address(self) -> str:
        """Where the client is, for the audit log."""
        client = self.scope.get("client")
        return str(client[0]) if client else ""

    async def fresh_person(self) -> None:
        """Read the person again from time to time: who signs out or is disabled sees nothing more."""
        if time.monotonic() >= self._stale_at:
            self._stale_at = time.monotonic() + _PERSON_FRESH_FOR * random.uniform(0.8, 1.2)  # not all sockets at once
            if (token := _token_in(self.scope)) is not None:
                self.person = await database_sync_to_async(_bearer)(token, self.address)
            else:
                user, session = self.scope["user"], self.scope["session"]
                self.person = await database_sync_to_async(_present)(user.pk, session.session_key)

    async def may_go_on(self, action: Action, thing: object = None) -> bool:
        """Whether the person may do this now; closes the socket where they may not even look."""
        await self.fresh_person()
        if self.person is None:
            await self.close(SIGNED_OUT)
            return False
        return may(self.person, action, thing)

    async def _guarded(self) -> None:
        try:
            await self.pump()
        except TooSlow:
            await self.close(SLOW)

    async def pump(self) -> None:
        """Send until the end."""
        raise NotImplementedError

    async def tell_all(self) -> None:
        """Send what comes in, for as long as the person may look."""
        while True:
            message = await self.subscription.next()
            if not await self.may_go_on(Action.VIEW):
                await self.close(NOT_ALLOWED)
                return
            await self.send(message)


def _present(person_id: int | None, session_key: str | None) -> Person | None:
    """The person, if they are active and their session is still there and under the password they have now."""
    from django.contrib.sessions.backends.db import SessionStore

    if person_id is None or session_key is None:
        return None
    person = Person.objects.filter(pk=person_id, is_active=True).first()
    kept = str(SessionStore(session_key).get(HASH_SESSION_KEY, ""))
    return person if person and constant_time_compare(kept, person.get_session_auth_hash()) else None


def _bearer(token: str, address: str) -> Person | None:
    """The person a token stands for, while it is good."""
    with audit.coming_from(address, "socket"):
        return tokens.person_of(token)


def _token_in(scope: Any) -> str | None:
    """The API token that a script sent with the handshake; browsers send their session."""
    headers = dict(scope.get("headers", ()))
    return tokens.bearer(headers.get(b"authorization", b"").decode("latin-1"))


class RunSocket(_Socket):
    """`ws/runs/<id>?after=<seq>`: one run, live."""

    run: Run | None = None

    async def pump(self) -> None:
        """What was missed, open drafts, then what is new."""
        self.run = await Run.objects.filter(pk=self._run_id).afirst()
        if self.run is None:
            await self.close(NO_SUCH_RUN)
            return
        messages = None
        if await self.may_go_on(Action.VIEW, self.run):
            messages = await tailer().follow(self._run_id, self._after, self.subscription)
        if messages is None:
            await self.close(NOT_ALLOWED)
            return
        try:
            async for message in messages:
                if not await self.may_go_on(Action.VIEW, self.run):
                    await self.close(NOT_ALLOWED)
                    return
                await self.send(message)
        finally:
            tailer().leave(self._run_id, self.subscription)

    @property
    def _run_id(self) -> int:
        return int(self.scope["url_route"]["kwargs"]["run_id"])

    @property
    def _after(self) -> int:
        given = parse_qs(self.scope["query_string"].decode("latin-1")).get("after", ["0"])[0]
        return int(given) if given.isdecimal() and len(given) < 12 else 0

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """A command: stop, pause, resume or hint."""
        name, fields = _command(text_data)
        try:
            if name not in COMMANDS:
                raise Refused(f"Send an object whose type is one of {', '.join(COMMANDS)}.")
            action = COMMANDS[name][0]
            self._stale_at = 0.0  # whoever may look for another moment may not order for one
            if self.run is None or not await self.may_go_on(action, self.run):
                raise Refused(f"You may not {action.replace('_', ' ')} this run.")
            person = cast("Person", self.person)
            await database_sync_to_async(_carry_out)(self.run, person, name, fields, self.address)
        except Refused as refusal:
            await self.send(wire.refused_message(name, refusal.message))
        else:
            await self.send(wire.done_message(name))


def _command(text: str | None) -> tuple[str, dict[str, Any]]:
    """The command's name and fields; an unreadable one has no name."""
    try:
        message = json.loads(text) if text and len(text) <= _LARGEST_MESSAGE else None
    except ValueError:
        message = None
    if not isinstance(message, dict):
        return "", {}
    return str(message.get("type", ""))[:20], message


def _stop(run: Run, by: Person, fields: dict[str, Any]) -> None:
    steering.stop(run, by, at_once=fields.get("at_once") is True)


def _pause(run: Run, by: Person, fields: dict[str, Any]) -> None:
    steering.pause(run, by)


def _resume(run: Run, by: Person, fields: dict[str, Any]) -> None:
    steering.resume(run, by)


def _hint(run: Run, by: Person, fields: dict[str, Any]) -> None:
    steering.hint(run, by, str(fields.get("text", "")))


# What a client may send, what it takes to be allowed to, and what it does.
COMMANDS: dict[str, tuple[Action, Callable[[Run, Person, dict[str, Any]], None]]] = {
    "stop": (Action.STEER, _stop),
    "pause": (Action.STEER, _pause),
    "resume": (Action.STEER, _resume),
    "hint": (Action.STEER, _hint),
}


def _carry_out(run: Run, by: Person, name: str, fields: dict[str, Any], address: str) -> None:
    with audit.coming_from(address, by.came_by or "socket"):
        COMMANDS[name][1](run, by, fields)


class NoticeSocket(_Socket):
    """`ws/notices`: how many notices the person has not read, whenever that changes."""

    async def pump(self) -> None:
        """Tell until the end."""
        person = cast("Person", self.person)
        tailer().follow_notices(person.pk, self.subscription)
        try:
            await self.tell_all()
        finally:
            tailer().leave_notices(person.pk, self.subscription)


class ListSocket(_Socket):
    """`ws/runs`: which rows of the lists changed."""

    async def pump(self) -> None:
        """Tell what changes until the end."""
        tailer().follow_lists(self.subscription)
        try:
            await self.tell_all()
        finally:
            tailer().leave_lists(self.subscription)
