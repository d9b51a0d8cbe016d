"""A proposed version timed against the accepted one in pairs: what two measurements against eager only hint at."""

from __future__ import annotations

import re
import uuid
from typing import Any

from apps.hosts import jobs
from apps.hosts.models import Device, Job, JobKind, JobState
from apps.hosts.signals import job_over
from apps.kernels.evaluation import Evaluation, EvaluationRequest, Language, Policy, Tier
from apps.kernels.plain import BadPlain, from_plain, to_plain
from apps.people.models import Person
from apps.people.refusals import Refused
from apps.reviews.models import Duel
from apps.runs import bell
from apps.runs.launch import why_not
from apps.runs.models import Version

_KEY = re.compile(r"duel:(?P<version>\d+):(?P<rival>\d+):")
_PRIORITY = 3  # a person waits for it
_LIVE = (JobState.WAITING, JobState.SENT, JobState.RUNNING)


def listen() -> None:
    """Hear of jobs that are over."""
    job_over.connect(take_result, dispatch_uid="reviews.duels")


def under_way(version: Version) -> list[Job]:
    """Duels of the version that are asked for and not there yet."""
    found = Job.objects.filter(key__startswith=f"duel:{version.pk}:", state__in=_LIVE)
    return list(found.select_related("device__host", "owner"))


def ask(person: Person, version: Version, rival: Version, device: Device) -> Job:
    """Have `device` time the version against the rival, in full. Raises `Refused` where it can't now."""
    run = version.run
    if refusal := why_not(device, Language(run.language)):
        raise Refused(refusal, "device")
    if any(job.device_id == device.pk for job in under_way(version)):
        raise Refused(
            f"{device} is timing {version} against the accepted one already; the result will show here.", "device"
        )
    request = EvaluationRequest(
        problem=run.problem.source,
        candidate=version.source,
        language=Language(run.language),
        policy=Policy(run.policy),
        tier=Tier.FULL,
        overrides=run.sizing.overrides,
        profile=False,
        against=rival.source,
        real_headers="load_inline" in version.source,
        allow_weak_isolation=device.host.weak_isolation_allowed_by_id is not None,
    )
    return jobs.submit(
        key=f"duel:{version.pk}:{rival.pk}:{uuid.uuid4().hex[:12]}",
        kind=JobKind.EVALUATE,
        device=device,
        request=to_plain(request),
        origin=f"run {run.pk} {version} against the accepted one",
        priority=_PRIORITY,
        owner=person,
    )


def latest(version: Version, rival: Version, device: Device) -> Duel | None:
    """The last duel of the two on that device."""
    return Duel.objects.filter(version=version, rival=rival, device=device).defer("evaluation").last()


def take_result(sender: object, job: Job, **_: Any) -> None:
    """Keep what a duel found; called in the transaction that ends the job."""
    named = _KEY.match(job.key)
    if named is None or job.state != JobState.DONE:
        return
    keys = [int(named["version"]), int(named["rival"])]
    if Version.objects.filter(pk__in=keys).count() != len(set(keys)):
        return
    try:
        found = from_plain(Evaluation, job.result)
    except BadPlain:
        return
    pair = found.timing.speedup
    Duel.objects.create(
        version_id=keys[0],
        rival_id=keys[1],
        device=job.device,
        verdict=found.verdict.value,
        outcome=found.timing.outcome.value if found.timing.outcome else "",
        ratio=pair.median if pair else None,
        low=pair.ci95[0] if pair else None,
        high=pair.ci95[1] if pair else None,
        evaluation=job.result,
        asked_by=job.owner,
    )
    bell.ring_on_commit()
