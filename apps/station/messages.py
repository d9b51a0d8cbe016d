"""What a server and a station say to each other, as frozen dataclasses that travel as JSON.

Down: `Order` as a Celery task on the device's own queue; a cancellation or a request to introduce itself as a broadcast.
Up: `Report` as a Celery task on the queue `reports`. A job's reports are numbered within its attempt, so that each takes
effect once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from apps.kernels.plain import Plain

# Names that both sides go by. The broker's queues and Celery's task and control names are part of the protocol.
REPORTS_QUEUE = "reports"
TAKE_REPORT = "hosts.take_report"
WORK = "station.work"
CANCEL = "station_cancel"
INTRODUCE = "station_introduce"

ALIVE_EVERY = 3.0  # seconds between two reports of what a station is doing


def device_queue(host: str, device: str) -> str:
    """The queue that one device alone consumes."""
    return f"host.{host}.{device}"


def node_name(host: str) -> str:
    """The Celery node name of a host's station, by which broadcasts find it."""
    return f"station@{host}"


class ReportKind(StrEnum):
    """What a report says. The first two are about the host, the others about one attempt at a job."""

    HELLO = "hello"  # payload: HostReport
    ALIVE = "alive"  # payload: list of Doing
    STARTED = "started"
    PROGRESS = "progress"  # payload: Progress or null
    DONE = "done"  # payload: the result (Evaluation, ProblemFacts or HostReport)
    FAILED = "failed"  # payload: {"error"}: this host could not do it, which says nothing of the candidate
    BROKE = "broke"  # payload: {"error", "counts"}: the bench died under it or could not jail; worth another attempt
    CANCELLED = "cancelled"


LASTING = (ReportKind.DONE, ReportKind.FAILED, ReportKind.BROKE, ReportKind.CANCELLED)


@dataclass(frozen=True)
class Order:
    """One attempt at one job. `request` is by `kind` an EvaluationRequest, null, or of a problem to look at

    {"problem", "overrides", "allow_weak_isolation"}.
    """

    job: int
    attempt: int
    kind: str
    device: str
    request: Plain = None
    deadline_seconds: float = 600.0
    origin: str = ""


@dataclass(frozen=True)
class Doing:
    """What a device is at right now. `in_jail` says that the candidate's own code may be running."""

    device: str
    job: int
    attempt: int
    in_jail: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Report:
    """One report of the station process `station` on `host`. `n` counts within (job, attempt), from 1."""

    host: str
    station: str
    kind: ReportKind
    device: str = ""
    job: int = 0
    attempt: int = 0
    n: int = 0
    in_jail: bool = False
    payload: Plain = None
