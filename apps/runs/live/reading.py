"""What the tailer reads, in threads of its own. Nothing here writes or knows of sockets."""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import connection
from django.db.models import Count, DateTimeField, F, Max, OuterRef, Q, Subquery
from django.utils import timezone

from apps.hosts.models import ELSEWHERE, LIVE_JOB_STATES, Device, Fault, Host, Job
from apps.notices import telling
from apps.runs import wire
from apps.runs.models import LIVE_RUN_STATES, Draft, Event, Run
from apps.runs.wire import Status

PAGE = 500  # events in one message
# When a device last finished a job: one look into an index each, however many jobs there were.
_LAST_DONE = Subquery(
    Job.objects.filter(device=OuterRef("pk"), finished_at__isnull=False)
    .order_by("-finished_at")
    .values("finished_at")[:1],
    output_field=DateTimeField(),
)
_STILL_NEWS = timedelta(minutes=2)  # a run that ended so long ago is still looked at for the lists


@dataclass(frozen=True)
class OpenText:
    """A draft as it was read."""

    agent: str
    iteration: int
    text: str


@dataclass(frozen=True)
class Snapshot:
    """News of one run: its status, events after the number asked for, and all its open drafts by step."""

    status: Status
    events: Sequence[Event] = ()
    drafts: Mapping[str, OpenText] = field(default_factory=dict)


class Versions:
    """Whether anything was committed at all since the last look. SQLite tells for free, other databases don't."""

    def __init__(self) -> None:
        self._seen: int | None = None

    def changed(self) -> bool:
        """Whether a read may find something new. Call from the thread that reads."""
        if connection.vendor != "sqlite":
            return True
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA data_version")
            version = cursor.fetchone()[0]
        changed = version != self._seen
        self._seen = version
        return bool(changed)


def snapshots(tails: Mapping[int, int]) -> dict[int, Snapshot]:
    """News of the runs in `tails`, each after its number.

    Drafts are read before events: a draft that is there may have ended meanwhile, which its event then says; the other
    way round text would come after its own end.
    """
    drafts: dict[int, dict[str, OpenText]] = {run_id: {} for run_id in tails}
    for draft in Draft.objects.filter(run_id__in=tails).order_by("pk"):
        drafts[draft.run_id][draft.step] = OpenText(draft.agent, draft.iteration, draft.text)
    statuses = {status.id: status for status in wire.statuses(Run.objects.filter(pk__in=tails), timezone.now())}
    behind = [
        Q(run_id=run_id, seq__gt=tail) for run_id, tail in tails.items() if _is_behind(statuses.get(run_id), tail)
    ]
    events: dict[int, list[Event]] = {}
    if behind:
        for event in Event.objects.filter(functools.reduce(operator.or_, behind)).order_by("run_id", "seq"):
            events.setdefault(event.run_id, []).append(event)
    return {run_id: Snapshot(status, events.get(run_id, ()), drafts[run_id]) for run_id, status in statuses.items()}


def _is_behind(status: Status | None, tail: int) -> bool:
    return status is not None and status.last_seq > tail


def first_look(run_id: int) -> Snapshot | None:
    """Status and open drafts of a run that nobody watched yet, or None if there is no such run.

    The status is read first: it says where the events stand that a client still has to be given, and no draft of a step
    that had ended by then can be among those read after it.
    """
    statuses = wire.statuses(Run.objects.filter(pk=run_id), timezone.now())
    if not statuses:
        return None
    drafts = {
        draft.step: OpenText(draft.agent, draft.iteration, draft.text)
        for draft in Draft.objects.filter(run_id=run_id).order_by("pk")
    }
    return Snapshot(statuses[0], (), drafts)


def page(run_id: int, after: int, until: int) -> tuple[str, int] | None:
    """The next events of a replay as a message, with the last number in it; None when there are no more."""
    events = list(Event.objects.filter(run_id=run_id, seq__gt=after, seq__lte=until).order_by("seq")[:PAGE])
    return (wire.events_message(events), events[-1].seq) if events else None


# --- the lists --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lists:
    """The runs that may change, for each host a value that differs when its page would, and for each person asked about
    how many notices they have not read with the newest one's number."""

    runs: Mapping[int, Status]
    hosts: Mapping[str, object]
    unread: Mapping[int, tuple[int, int]]


def lists(people: Collection[int], *, with_rows: bool = True) -> Lists:
    """The lists as they stand; without their rows where nobody looks at a list."""
    unread = telling.unread(people) if people else {}
    if not with_rows:
        return Lists({}, {}, unread)
    now = timezone.now()
    news = Q(state__in=LIVE_RUN_STATES) | Q(finished_at__gte=now - _STILL_NEWS)
    runs = {status.id: status for status in wire.statuses(Run.objects.filter(news), now)}
    return Lists(runs, dict(_hosts()), unread)


def _hosts() -> Iterator[tuple[str, object]]:
    at_work: dict[int, list[tuple[object, ...]]] = {}
    live = Job.objects.filter(state__in=LIVE_JOB_STATES).annotate(host_id=F("device__host_id")).order_by("pk")
    for host_id, *job in live.values_list("host_id", "pk", "state", "stage", "message", "fraction"):
        at_work.setdefault(host_id, []).append(tuple(job))
    faults = dict(Fault.objects.order_by().values_list("host_id").annotate(Count("pk")))
    finished = dict(Device.objects.order_by().values_list("host_id").annotate(last=Max(_LAST_DONE)))
    for host in Host.objects.exclude(name=ELSEWHERE).defer("report"):
        looks = (host.enabled, host.is_online(), host.station, host.reported_at, host.weak_isolation_allowed_by_id)
        yield host.name, (looks, at_work.get(host.pk), faults.get(host.pk), finished.get(host.pk))
