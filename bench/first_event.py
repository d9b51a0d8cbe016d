"""How long from the Launch button to the run's first event on its page, and from a model's first byte to that page.

    python bench/first_event.py [--launches 20] [--candidates 4] [--browser] [--postgres] [--json]

A real web process, agents worker and broker; the model is a server in this process that stamps each piece of text with the
time at which it is sent, so that a page (a client of the run's socket, or with --browser a Chromium) can tell how old it is.
The worker is warm: one run is done before anything is measured. Both clocks are this machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import private_servers as servers

THINKING, BETWEEN, PIECES = 0.1, 0.05, 5  # seconds before the first piece and between pieces; pieces of an answer
_STAMP = re.compile(r"\[(\d+)/(\d{19})\]")
# The first thing of a run that a person sees on its page: an agent that has begun, or what it says.
SEEN = """() => [...document.querySelectorAll("#reasoning .say, [data-lane=coder] [data-doing]")]
  .some((one) => one.matches(".say") || one.textContent.startsWith("Writing"))"""


@dataclass(frozen=True)
class Latencies:
    """Milliseconds: how many, median, 99th percentile, largest."""

    count: int
    p50: float
    p99: float
    largest: float

    @classmethod
    def of(cls, milliseconds: Sequence[float]) -> Latencies:
        """The figures of a sample; the 99th percentile of fewer than a hundred is near their largest."""
        ordered = sorted(milliseconds)
        p99 = statistics.quantiles(ordered, n=100, method="inclusive")[98] if len(ordered) > 1 else ordered[0]
        return cls(len(ordered), statistics.median(ordered), p99, ordered[-1])


@dataclass(frozen=True)
class Found:
    """What came of it. `pieces` are all pieces of text after a call's first."""

    database: str
    page: str
    launch_to_first_event: Latencies
    first_byte_to_page: Latencies
    pieces: Latencies


@dataclass
class Seen:
    """What one page saw of one run: milliseconds to its first event, and each stamp's age by call and place."""

    first_event: float
    first_bytes: list[float] = field(default_factory=list)
    later: list[float] = field(default_factory=list)


# --- the model --------------------------------------------------------------------------------------------------


class _Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Think a little, then answer in stamped pieces with something that is no kernel."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        time.sleep(THINKING)
        for place in range(PIECES):
            if place:
                time.sleep(BETWEEN)
            self._send(body["model"], {"content": f"[{place}/{time.time_ns()}] thinking of a kernel, not writing it. "})
        self._send(body["model"], {}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, model: str, delta: dict[str, str], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [choice]}
        self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        self.wfile.flush()


@contextmanager
def model() -> Iterator[str]:
    """The scripted model's address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def worker(environment: dict[str, str]) -> Iterator[None]:
    """An agents worker as production runs it."""
    command = [sys.executable, "-m", "pragma_web.worker", "agents", "--threads", "8"]
    process = subprocess.Popen(command, cwd=servers.ROOT, env={**os.environ, **environment})
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


# --- measuring --------------------------------------------------------------------------------------------------


def measure(launches: int, candidates: int, *, browser: bool = False, postgres: bool = False) -> Found:
    """Start everything, warm it with one run, launch and watch."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pragma-first-")))
        environment = {"PRAGMA_VAR": str(folder), "PRAGMA_KEY": "a-key-for-this-benchmark-alone", "PRAGMA_DEBUG": "0"}
        environment["REDIS_URL"] = stack.enter_context(servers.broker(folder))
        environment["DATABASE_URL"] = f"sqlite:///{folder / 'first.sqlite3'}"
        if postgres:
            environment["DATABASE_URL"] = stack.enter_context(servers.postgres(folder / "pg"))
        environment["DJANGO_SETTINGS_MODULE"] = "pragma_web.settings"
        address = stack.enter_context(model())
        session = _prepare(environment, address)
        base = stack.enter_context(servers.web(environment))
        stack.enter_context(worker(environment))
        page = _Chromium(base, session) if browser else _Client(base, session)
        seen = asyncio.run(page.watch(launches, candidates))
    return Found(
        database="PostgreSQL" if postgres else "SQLite",
        page="Chromium" if browser else "a client of the socket",
        launch_to_first_event=Latencies.of([one.first_event for one in seen]),
        first_byte_to_page=Latencies.of([late for one in seen for late in one.first_bytes]),
        pieces=Latencies.of([late for one in seen for late in one.later]),
    )


def _prepare(environment: dict[str, str], address: str) -> str:
    """Tables, a person, a host, a problem, the model; the person's session."""
    done = subprocess.run(
        [sys.executable, __file__, "--role", "prepare", address],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout.strip().splitlines()[-1]


class _Client:
    """A page as a program: it posts the form, reads the run's page and follows its socket."""

    def __init__(self, base: str, session: str) -> None:
        self.base, self.session = base, session

    async def watch(self, launches: int, candidates: int) -> list[Seen]:
        """One run after the other, the first of them not counted."""
        import httpx

        async with httpx.AsyncClient(base_url=self.base, cookies={"sessionid": self.session}, timeout=60) as http:
            return [await self._one(http, candidates) for _ in range(launches + 1)][1:]

    async def _one(self, http: Any, candidates: int) -> Seen:
        from websockets.asyncio.client import connect

        form = form_of((await http.get("/launch/?problem=scripted&coder=scripted")).text, candidates)
        pressed = time.perf_counter()
        answer = await http.post("/launch/", data=form, headers={"Referer": self.base})
        if answer.status_code != 302:
            raise SystemExit(f"The launch was refused ({answer.status_code}): {_complaint(answer.text)}")
        page = (await http.get(answer.headers["location"])).text
        found = re.search(r'id="run" data-run="(\d+)" data-seq="(\d+)"', page)
        assert found is not None, "the page of the run is no page of a run"
        seen = Seen((time.perf_counter() - pressed) * 1e3 if int(found[2]) > 1 else 0.0)
        url = f"{self.base.replace('http', 'ws')}/ws/runs/{found[1]}?after={found[2]}"
        cookie = {"Cookie": f"sessionid={self.session}"}
        async with connect(url, additional_headers=cookie, origin=self.base, max_size=None) as socket:  # type: ignore[arg-type]
            stamps: set[str] = set()
            async for text in socket:
                arrived = time.time_ns()
                message = json.loads(text)
                events = message.get("events", [])
                if events and not seen.first_event:
                    seen.first_event = (time.perf_counter() - pressed) * 1e3
                if message["type"] == "draft":
                    age(seen, stamps, message["text"], arrived)
                for event in events:
                    if event["kind"] == "step_ended":  # what came just before a step's end comes with it
                        age(seen, stamps, event["data"]["text"], arrived)
                if any(event["kind"] == "run_ended" for event in events):
                    return seen
        return seen


class _Chromium:
    """A page in a browser: what is measured is what stands in the document."""

    def __init__(self, base: str, session: str) -> None:
        self.base, self.session = base, session

    async def watch(self, launches: int, candidates: int) -> list[Seen]:
        """One run after the other, the first of them not counted."""
        from playwright.async_api import async_playwright

        async with async_playwright() as playwright:
            chromium = await playwright.chromium.launch(
                executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-background-networking"]
            )
            context = await chromium.new_context(base_url=self.base)
            await context.add_cookies([{"name": "sessionid", "value": self.session, "url": self.base}])
            seen = [await self._one(await context.new_page(), candidates) for _ in range(launches + 1)][1:]
            await chromium.close()
            return seen

    async def _one(self, page: Any, candidates: int) -> Seen:
        await page.goto("/launch/?problem=scripted&coder=scripted", wait_until="networkidle")
        async with page.expect_response("**/launch/preview/"):  # what it will do is looked up again, button and all
            await page.fill("[name=candidates]", str(candidates))
            await page.dispatch_event("[name=candidates]", "change")
        await page.wait_for_load_state("networkidle")
        pressed = time.perf_counter()
        await page.click("button.launch")
        await page.wait_for_function(SEEN, polling=5)
        seen = Seen((time.perf_counter() - pressed) * 1e3)
        stamps: set[str] = set()
        ended = time.monotonic() + 60
        while time.monotonic() < ended:
            texts, over = await page.evaluate(
                """() => [[...document.querySelectorAll("[data-draft] [data-text]")].map((one) => one.textContent).join(" "),
                  document.querySelector("#part-head .actions a.button") !== null]"""
            )
            age(seen, stamps, texts, time.time_ns())
            if over:
                break
            await asyncio.sleep(0.005)
        await page.close()
        return seen


def age(seen: Seen, stamps: set[str], text: str, arrived: int) -> None:
    """Note how old each stamp is that was not there before."""
    for stamp in _STAMP.finditer(text):
        if stamp[0] not in stamps:
            stamps.add(stamp[0])
            (seen.first_bytes if stamp[1] == "0" else seen.later).append((arrived - int(stamp[2])) / 1e6)


def form_of(page: str, candidates: int) -> dict[str, str]:
    """The launch form as a browser would send it from that page."""
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token is not None, "the launch page has no form"
    return {
        "csrfmiddlewaretoken": token[1], "how": "choose", "problem": "scripted", "language": "cpp", "policy": "library",
        "device": "scripted/cpu", "coder": "scripted", "iterations": "1", "candidates": str(candidates), "profile": "on",
        "minutes": "5",
    }  # fmt: skip


def _complaint(page: str) -> str:
    found = re.findall(r'class="(?:error|errorlist|notice bad)[^"]*"[^>]*>([^<]+)', page)
    return "; ".join(text.strip() for text in found) or "it does not say why"


# --- inner role: it knows Django ----------------------------------------------------------------------------------


def prepare(address: str) -> None:
    """Fill the database; prints a session's key."""
    from datetime import timedelta

    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore
    from django.core.management import call_command
    from django.utils import timezone

    from apps.hosts.models import Device, Host
    from apps.kernels.facts import ProblemFacts
    from apps.kernels.machine import Ceilings, HostReport
    from apps.kernels.plain import to_plain
    from apps.ledger.models import LanguageModel
    from apps.people.models import Person
    from apps.runs import problems
    from apps.runs.models import Problem, Sizing, SizingState

    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    person = Person.objects.create_user("launcher")
    report = HostReport(
        "Scripted", 2, 512, 8 << 30, (), (), {}, None, Ceilings(), (), "full", counters=False, counters_detail="none"
    )
    later = timezone.now() + timedelta(days=1)
    host = Host.objects.create(name="scripted", report=to_plain(report), reported_at=timezone.now(), seen_at=later)
    Device.objects.create(host=host, name="cpu", kind="cpu", languages=["cpp"])
    source = (servers.ROOT / "problems" / "elementwise" / "softsign.py").read_text()
    problem = Problem.objects.create(
        slug="scripted", title="Scripted", source=source, digest=problems.digest_of(source)
    )
    sizing = problems.sizing_of(problem, {})
    facts = to_plain(ProblemFacts())
    Sizing.objects.filter(pk=sizing.pk).update(state=SizingState.READY, facts=facts, checked_at=timezone.now())
    LanguageModel.objects.create(
        name="scripted", model_id="openai/scripted", api_base=address, usd_per_million_in=0, usd_per_million_out=0
    )
    session = SessionStore()
    session[SESSION_KEY] = str(person.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = person.get_session_auth_hash()
    session.save()
    print(session.session_key)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=20)
    parser.add_argument("--candidates", type=int, default=4, help="of each run; a candidate is two calls of the model")
    parser.add_argument("--browser", action="store_true", help="in Chromium, from the click to the document")
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL cluster of its own")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    try:
        found = measure(given.launches, given.candidates, browser=given.browser, postgres=given.postgres)
    except servers.NotHere as missing:
        print(f"This machine lacks what it takes: {missing}", file=sys.stderr)
        return 2
    print(json.dumps(asdict(found), indent=2) if given.json else told(found))
    return 0


def told(found: Found) -> str:
    """The figures for people."""
    rows = [
        ("button to first event on the page", found.launch_to_first_event),
        ("a model's first byte to the page", found.first_byte_to_page),
        ("later pieces to the page", found.pieces),
    ]
    lines = [f"{found.database}, {found.page}"]
    for name, one in rows:
        lines.append(
            f"{name:<36} {one.count:>5}: median {one.p50:.0f} ms, p99 {one.p99:.0f} ms, largest {one.largest:.0f} ms"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--role"]:
        import django

        django.setup()
        prepare(sys.argv[3])
    else:
        sys.exit(main())
