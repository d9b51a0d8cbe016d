"""Problems: taken in from text, looked at by a host for each choice of sizes, refused with the reason.

A problem's code never runs here: `ast` says whether it has the form, a host's jail finds its facts.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import Any

from django.db import transaction
from django.dispatch import receiver
from django.utils import timezone
from django.utils.text import slugify

from apps.hosts import jobs
from apps.hosts.models import Device, Job, JobKind, JobState
from apps.hosts.signals import job_over
from apps.kernels.facts import ProblemFacts
from apps.kernels.plain import BadPlain, from_plain
from apps.kernels.problem import BadProblem, ProblemSource, read_problem
from apps.people.models import Person
from apps.runs import bell
from apps.runs.models import Origin, Problem, Sizing, SizingState
from apps.runs.refusals import ProblemRefused

_ASKED = 5  # a person looks at it or waits to launch it
_UNASKED = -1  # after everything that a run or a person waits for

Overrides = dict[str, int | float | bool | str]


def digest_of(text: str) -> str:
    """SHA-256 of a source."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def read(source: str, overrides: Overrides | None = None) -> ProblemSource:
    """What `ast` says of a problem's source. Raises `ProblemRefused` naming what is missing and where."""
    if "\x00" in source:
        raise ProblemRefused("The source holds NUL characters, so it is no Python text.", "source")
    try:
        return read_problem(source, overrides)
    except BadProblem as problem:
        raise ProblemRefused(str(problem), "overrides" if overrides else "source") from None


def add(
    person: Person | None,
    source: str,
    *,
    title: str = "",
    level: int | None = None,
    category: str = "",
    description: str = "",
    origin: Origin = Origin.PASTED,
    look: bool = True,
) -> Problem:
    """Take a problem in and, with `look`, have a host look at it. The same source gives the problem that is there."""
    text = read(source)
    digest = digest_of(source)
    with transaction.atomic():
        known = Problem.objects.filter(digest=digest).first()
        if known is not None:
            if known.hidden:
                Problem.objects.filter(pk=known.pk).update(hidden=False)
                known.hidden = False
            return known
        title = (title or _first_line(text.docstring) or "Untitled problem")[:120]
        problem = Problem.objects.create(
            slug=_free_slug(title),
            title=title,
            source=source,
            digest=digest,
            level=level,
            category=category,
            description=description or text.docstring,
            origin=origin,
            owner=person,
        )
        if look:
            sizing_for(problem, {})
    return problem


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else ""


def _free_slug(title: str) -> str:
    stem = slugify(title)[:70] or "problem"
    taken = set(Problem.objects.filter(slug__startswith=stem).values_list("slug", flat=True))
    return (
        stem
        if stem not in taken
        else next(f"{stem}-{n}" for n in range(2, len(taken) + 3) if f"{stem}-{n}" not in taken)
    )


# --- sizes ------------------------------------------------------------------------------------------------------


def normalised(problem: Problem, overrides: Overrides) -> Overrides:
    """The overrides that change something. Raises `ProblemRefused` for an unknown name or a value of another type."""
    as_written = {constant.name: constant.value for constant in read(problem.source).constants}
    wanted = {constant.name: constant.value for constant in read(problem.source, overrides).constants}
    return {name: wanted[name] for name in sorted(overrides) if wanted[name] != as_written[name]}


def sizing_for(problem: Problem, overrides: Overrides) -> Sizing:
    """The problem at those sizes, handed to a host to be looked at if nobody has yet. Raises `ProblemRefused`.

    Somebody waits for it: where it was to be looked at some time, it is looked at next.
    """
    sizing = sizing_of(problem, overrides)
    if sizing.state == SizingState.UNCHECKED:
        look_at(sizing, priority=_ASKED)
    elif sizing.state == SizingState.CHECKING and sizing.job_id is not None:
        jobs.hasten(sizing.job_id, _ASKED)
    return sizing


def sizing_of(problem: Problem, overrides: Overrides) -> Sizing:
    """The row of the problem at those sizes, made if it is new. Raises `ProblemRefused`."""
    changed = normalised(problem, overrides)
    digest = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()
    sizing, _ = Sizing.objects.get_or_create(problem=problem, digest=digest, defaults={"overrides": changed})
    return sizing


def look_at(sizing: Sizing, *, priority: int) -> bool:
    """Have a host find the facts of a sizing that nobody looks at yet; whether one could be asked."""
    device = _an_eye()
    if device is None:
        return False
    with transaction.atomic():
        unchecked = Sizing.objects.filter(pk=sizing.pk, state=SizingState.UNCHECKED)
        if not unchecked.update(state=SizingState.CHECKING, refusal=""):
            sizing.refresh_from_db()
            return sizing.state == SizingState.CHECKING
        job = jobs.submit(
            key=f"inspect:{sizing.pk}:{uuid.uuid4().hex[:12]}",
            kind=JobKind.INSPECT,
            device=device,
            request={
                "problem": sizing.problem.source,
                "overrides": sizing.overrides,
                "allow_weak_isolation": device.host.weak_isolation_allowed_by_id is not None,
            },
            origin=f"problem {sizing.problem.slug}"[:120],
            priority=priority,
        )
        Sizing.objects.filter(pk=sizing.pk).update(job=job)
        bell.ring_on_commit()
    sizing.refresh_from_db()
    return True


def look_at_unchecked() -> int:
    """Have all sizings looked at that no host was there for, when nothing else is to do; how many were asked for."""
    unchecked = Sizing.objects.filter(state=SizingState.UNCHECKED).select_related("problem")
    return sum(look_at(sizing, priority=_UNASKED) for sizing in unchecked)


def _an_eye() -> Device | None:
    """A device of a host that is there and runs problems, CPUs first: looking needs no accelerator."""
    devices = Device.objects.select_related("host").filter(retired=False, host__enabled=True)
    there = [device for device in devices if device.host.is_online() and not device.host.refuses_candidates]
    return min(there, key=lambda device: device.kind != "cpu", default=None)


@receiver(job_over)
def take_facts(sender: object, job: Job, **_: Any) -> None:
    """Keep the facts a host found; called in the transaction that ends the job."""
    if job.kind != JobKind.INSPECT:
        return
    sizings = Sizing.objects.filter(job=job, state=SizingState.CHECKING)
    now = timezone.now()
    try:
        facts = from_plain(ProblemFacts, job.result) if job.state == JobState.DONE else None
    except BadPlain:
        facts = None
    if facts is None:
        sizings.update(
            state=SizingState.UNCHECKED, refusal=f"Not looked at yet: {job.error or job.get_state_display()}"
        )
    elif facts.refusal:
        sizings.update(state=SizingState.REFUSED, refusal=facts.refusal, facts=job.result, checked_at=now)
    else:
        sizings.update(state=SizingState.READY, refusal="", facts=job.result, checked_at=now)
    bell.ring_on_commit()
