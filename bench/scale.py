"""What each page costs in a large team's database: time at the server, queries, and the size of the answer.

    python bench/scale.py [--runs 10000] [--events 100000] [--versions 500] [--database URL | --postgres] [--only WORD]

Fills a database of its own (SQLite, as `make run` uses it), asks for every page, fragment, list and detail of the URL
configuration as an admin, and prints them, the slowest first. `process` is the time that this process was at work, which a
busy machine disturbs less than the clock. Exits with 1 where a page is over 300 ms, larger than 1 MB or answers no 200.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import private_servers as servers

if TYPE_CHECKING:
    from django.test import Client

    from bench.large.routes import Address

SLOWEST_MS = 300.0
LARGEST = 1_000_000  # bytes of an answer that a browser has to lay out
TURNS = 5
_TRIVIAL = "/link/"


@dataclass(frozen=True)
class Cost:
    """What one address took: milliseconds of the first request, the median of the later ones and of the process's own
    time in them; queries; bytes of the answer. `memory` is by how many MB the process's largest size grew."""

    name: str
    path: str
    status: int
    first_ms: float
    median_ms: float
    process_ms: float
    queries: int
    size: int
    download: bool = False
    memory: float = 0.0

    @property
    def trouble(self) -> str:
        """What is wrong with it, if anything."""
        if self.status not in (200, 204):
            return f"answers {self.status}"
        if self.download:
            return ""
        late = f"over {SLOWEST_MS:.0f} ms" if min(self.median_ms, self.process_ms) > SLOWEST_MS else ""
        return late or ("over 1 MB" if self.size > LARGEST else "")


def ask(client: Client, address: Address, turns: int) -> Cost:
    """Ask once cold, once for the queries, then `turns` times by the clock."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    status, size = _answer(client, address.path)
    first = time.perf_counter() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    with CaptureQueriesContext(connection) as queries:
        _answer(client, address.path)
        asked = len(queries)
    taken, own = [], []
    for _ in range(1 if address.download else max(1, turns)):
        began, at_work = time.perf_counter(), time.process_time()
        _answer(client, address.path)
        taken.append(time.perf_counter() - began)
        own.append(time.process_time() - at_work)
    return Cost(
        address.name, address.path, status, first * 1e3, statistics.median(taken) * 1e3, statistics.median(own) * 1e3,
        asked, size, address.download, grown,
    )  # fmt: skip


def _answer(client: Client, path: str) -> tuple[int, int]:
    """Status and size; a streamed answer is read piece by piece and kept nowhere."""
    answer: Any = client.get(path, headers={"HX-Request": "true"} if "/models/tests/" in path else None)
    size = sum(map(len, answer.streaming_content)) if answer.streaming else len(answer.content)
    answer.close()
    return answer.status_code, size


@dataclass(frozen=True)
class CaughtUp:
    """What a socket that joins the longest run at its beginning is sent: messages and the largest one's KB; milliseconds
    to the first and in all; by how many MB the process grew."""

    messages: int
    largest_kb: float
    first_ms: float
    all_ms: float
    memory: float


def catch_up(run_id: int) -> CaughtUp:
    """All of the run's events, page by page, as `apps.runs.live.tailer` replays them."""
    from apps.runs.live import reading

    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    seen = reading.first_look(run_id)
    until = seen.status.last_seq if seen else 0
    after, messages, largest, first = 0, 0, 0, 0.0
    while after < until and (found := reading.page(run_id, after, until)) is not None:
        message, after = found
        messages, largest = messages + 1, max(largest, len(message))
        first = first or time.perf_counter() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return CaughtUp(messages, largest / 1000, first * 1e3, (time.perf_counter() - began) * 1e3, grown)


def measure(given: argparse.Namespace) -> tuple[list[Cost], CaughtUp]:
    """Fill the database and ask for everything."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection
    from django.test import Client

    from bench.large.building import build
    from bench.large.routes import addresses
    from bench.large.size import Size

    call_command("migrate", verbosity=0)
    began = time.perf_counter()
    large = build(Size(given.runs, given.events, given.versions))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor != "sqlite" else "PRAGMA wal_checkpoint(TRUNCATE)")
    print(f"filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    client = Client(headers={"host": "localhost"}, raise_request_exception=False)
    client.force_login(large.world.people[0])
    wanted = [one for one in addresses(large) if given.only in one.path]
    wanted.sort(key=lambda one: one.download)  # what they hold in memory shows only before something larger was held
    caught_up = catch_up(large.runs.events)
    return [ask(client, one, given.turns) for one in wanted], caught_up


def told(costs: list[Cost], caught_up: CaughtUp) -> str:
    """The table, the slowest first."""
    trivial = next((one.process_ms for one in costs if one.path == _TRIVIAL), 1.0)
    lines = [f"{'first':>7} {'median':>7} {'process':>7} {'ratio':>6} {'queries':>7} {'KB':>7}  address"]
    for one in sorted((one for one in costs if not one.download), key=lambda one: -one.process_ms):
        figures = f"{one.first_ms:7.0f} {one.median_ms:7.0f} {one.process_ms:7.0f} {one.process_ms / trivial:6.1f}"
        lines.append(f"{figures} {one.queries:7} {one.size / 1000:7.0f}  {one.path} {one.trouble}".rstrip())
    lines += ["", f"{'ms':>7} {'queries':>7} {'KB':>7} {'+MB':>7}  downloads (+MB: what the process grew by)"]
    for one in costs:
        if one.download:
            lines.append(
                f"{one.median_ms:7.0f} {one.queries:7} {one.size / 1000:7.0f} {one.memory:7.1f}  {one.path} {one.trouble}"
            )
    lines += [
        "",
        f"joining the longest run at its beginning: {caught_up.messages} messages of at most {caught_up.largest_kb:.0f} KB, "
        f"the first after {caught_up.first_ms:.0f} ms, all made in {caught_up.all_ms:.0f} ms, +{caught_up.memory:.1f} MB",
    ]
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=100_000, help="of the run that has most")
    parser.add_argument("--versions", type=int, default=500, help="of the run that has most")
    parser.add_argument("--turns", type=int, default=TURNS, help="requests by the clock, after two that are not")
    parser.add_argument("--database", default="", help="URL of an empty database to fill, in place of a SQLite file")
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL cluster of its own")
    parser.add_argument("--only", default="", help="addresses with this in them")
    parser.add_argument(
        "--keep", type=Path, help="fill the database in this folder, which must be empty, and leave it there"
    )
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = given.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pragma-scale-")))
        url = given.database
        if given.postgres:
            try:
                url = stack.enter_context(servers.postgres(folder / "pg"))
            except servers.NotHere as missing:
                print(f"This machine lacks what it takes: {missing}", file=sys.stderr)
                return 2
        os.environ.update(PRAGMA_VAR=str(folder), PRAGMA_KEY="a-key-for-this-benchmark-alone", PRAGMA_DEBUG="0")
        os.environ["DATABASE_URL"] = url or f"sqlite:///{folder / 'pragma.sqlite3'}"
        os.environ["REDIS_URL"] = f"unix://{folder / 'no-broker.sock'}"
        os.environ["DJANGO_SETTINGS_MODULE"] = "pragma_web.settings"
        costs, caught_up = measure(given)
    as_json = {"pages": [asdict(one) for one in costs], "catch_up": asdict(caught_up)}
    print(json.dumps(as_json, indent=2) if given.json else told(costs, caught_up))
    return 1 if any(one.trouble for one in costs) else 0


if __name__ == "__main__":
    sys.exit(main())
