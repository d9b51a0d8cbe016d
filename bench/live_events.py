"""How long an event takes from just before its writer's transaction to a browser, and whether each comes exactly once.

    python bench/live_events.py [--seconds 20] [--clients 50] [--runs 5] [--rate 40] [--postgres] [--json]

Scripted runs write events in batches every 50 ms, as the product does; browser-like clients watch one of the runs through
a real web process (uvicorn) and a real broker. Exits with 1 if an event is missing, double or out of order anywhere.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import private_servers as servers

EVERY = 0.05  # seconds between a writer's transactions


@dataclass(frozen=True)
class Load:
    """What is asked of it."""

    seconds: float
    clients: int
    runs: int
    rate: int

    @property
    def batches(self) -> int:
        """Transactions of one writer."""
        return round(self.seconds / EVERY)

    @property
    def batch(self) -> int:
        """Events in one transaction."""
        return max(1, round(self.rate * EVERY))


@dataclass(frozen=True)
class Found:
    """What came of it; latencies in milliseconds over all events of all clients."""

    database: str
    clients: int
    runs: int
    events_per_second: float
    received: int
    p50: float
    p99: float
    largest: float
    gaps: int
    doubles: int


def measure(load: Load, *, postgres: bool = False) -> Found:
    """Start everything, write, watch, and count."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pragma-live-")))
        environment = {"PRAGMA_VAR": str(folder), "PRAGMA_KEY": "a-key-for-this-benchmark-alone", "PRAGMA_DEBUG": "0"}
        environment["REDIS_URL"] = stack.enter_context(servers.broker(folder))
        environment["DATABASE_URL"] = f"sqlite:///{folder / 'live.sqlite3'}"
        if postgres:
            environment["DATABASE_URL"] = stack.enter_context(servers.postgres(folder / "pg"))
        environment["DJANGO_SETTINGS_MODULE"] = "pragma_web.settings"
        prepared = json.loads(_here(["prepare", str(load.runs)], environment).communicate()[0])
        address = stack.enter_context(servers.web(environment))
        words = ["write", *map(str, [load.batches, load.batch, *prepared["runs"]])]
        expected = load.batches * load.batch
        latencies, gaps, doubles, seconds = asyncio.run(_watch(load, address, prepared, expected, words, environment))
    return Found(
        database="PostgreSQL" if postgres else "SQLite",
        clients=load.clients,
        runs=load.runs,
        events_per_second=load.runs * expected / seconds,
        received=len(latencies),
        p50=statistics.median(latencies),
        p99=statistics.quantiles(latencies, n=100)[98],
        largest=max(latencies),
        gaps=gaps,
        doubles=doubles,
    )


def _here(words: list[str], environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """This script in a process of its own, in one of its inner roles."""
    return subprocess.Popen(
        [sys.executable, __file__, "--role", *words], env={**os.environ, **environment}, stdout=subprocess.PIPE
    )


# --- browsers ---------------------------------------------------------------------------------------------------


async def _watch(
    load: Load, address: str, prepared: dict[str, object], expected: int, words: list[str], environment: dict[str, str]
) -> tuple[list[float], int, int, float]:
    """All clients, and the writers once every client is connected."""
    ready = asyncio.Barrier(load.clients + 1)
    clients = [asyncio.create_task(_client(address, prepared, expected, ready)) for _ in range(load.clients)]
    await ready.wait()
    writer = _here(words, environment)
    seen = await asyncio.wait_for(asyncio.gather(*clients), load.seconds + 120)
    took = float(writer.communicate()[0])
    latencies, gaps, doubles = [], 0, 0
    for numbers, late in seen:
        latencies += late
        gaps += len(set(range(1, expected + 1)) - set(numbers))
        doubles += len(numbers) - len(set(numbers))
        doubles += sum(after <= before for before, after in itertools.pairwise(numbers))
    return latencies, gaps, doubles, took


async def _client(
    address: str, prepared: dict[str, object], expected: int, ready: asyncio.Barrier
) -> tuple[list[int], list[float]]:
    """One browser: the numbers in the order they came, and each event's milliseconds on its way."""
    from websockets.asyncio.client import connect

    numbers: list[int] = []
    latencies: list[float] = []
    watched = prepared["runs"][0]  # type: ignore[index]
    url = f"{address.replace('http', 'ws')}/ws/runs/{watched}"
    headers = {"Cookie": f"sessionid={prepared['session']}"}
    async with connect(url, additional_headers=headers, origin=address, max_size=None) as socket:  # type: ignore[arg-type]
        async for text in socket:
            arrived = time.time_ns()
            message = json.loads(text)
            if message["type"] == "ready":
                await ready.wait()
            for event in message.get("events", []):
                numbers.append(event["seq"])
                latencies.append((arrived - event["data"]["written_ns"]) / 1e6)
            if numbers and numbers[-1] >= expected:
                return numbers, latencies
    return numbers, latencies


# --- inner roles: they know Django ------------------------------------------------------------------------------


def prepare(runs: int) -> None:
    """Tables, a person with a session, and runs; prints their ids."""
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore
    from django.core.management import call_command

    from apps.hosts.models import Device, Host
    from apps.people.models import Person
    from apps.runs.models import Problem, Run, Sizing

    call_command("migrate", verbosity=0)
    person = Person.objects.create_user("watcher")
    device = Device.objects.create(host=Host.objects.create(name="scripted"), name="cpu", kind="cpu")
    problem = Problem.objects.create(slug="scripted", title="Scripted", source="", digest="0")
    sizing = Sizing.objects.create(problem=problem, digest="0")
    made = [
        Run.objects.create(problem=problem, sizing=sizing, device=device, owner=person, state="running").pk
        for _ in range(runs)
    ]
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    print(json.dumps({"session": session.session_key, "runs": made}))


def write(batches: int, batch: int, runs: list[int]) -> None:
    """One thread a run, as in an agents worker, each in step with the clock; prints the seconds it took."""
    from django.db import connection

    from apps.runs import events
    from apps.runs.events import Entry

    started = time.monotonic() + 0.5

    def one(run: int, shift: float) -> None:
        for number in range(batches):
            time.sleep(max(0.0, started + shift + number * EVERY - time.monotonic()))
            now = time.time_ns()
            data = {"written_ns": now, "text": "some reasoning of the length that a line has " * 3}
            entries = [Entry("log", f"line {number}.{place}", data=data) for place in range(batch)]
            events.append(run, entries)
        connection.close()

    threads = [threading.Thread(target=one, args=(run, EVERY * i / len(runs))) for i, run in enumerate(runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(time.monotonic() - started)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rate", type=int, default=40, help="events a second in each run")
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL cluster of its own")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    try:
        found = measure(Load(given.seconds, given.clients, given.runs, given.rate), postgres=given.postgres)
    except servers.NotHere as missing:
        print(f"This machine lacks what it takes: {missing}", file=sys.stderr)
        return 2
    print(json.dumps(asdict(found), indent=2) if given.json else _told(found))
    return 1 if found.gaps or found.doubles else 0


def _told(found: Found) -> str:
    return (
        f"{found.database}: {found.runs} runs, {found.events_per_second:.0f} events/s, {found.clients} clients on one run\n"
        f"{found.received} events received: median {found.p50:.0f} ms, p99 {found.p99:.0f} ms, largest {found.largest:.0f} ms\n"
        f"gaps {found.gaps}, doubles or out of order {found.doubles}"
    )


def _inner(words: list[str]) -> None:
    import django

    django.setup()
    role, numbers = words[0], [int(word) for word in words[1:]]
    if role == "prepare":
        prepare(numbers[0])
    else:
        write(numbers[0], numbers[1], numbers[2:])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--role"]:
        _inner(sys.argv[2:])
    else:
        sys.exit(main())
