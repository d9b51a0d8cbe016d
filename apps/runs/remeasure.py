"""Measuring a version again on a device of one's choice: a job like any other, whose result becomes a measurement."""

from __future__ import annotations

import re
import uuid
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from apps.agents.words import Agent
from apps.hosts import jobs
from apps.hosts.models import Device, Job, JobKind, JobState
from apps.hosts.signals import job_over
from apps.kernels.evaluation import Evaluation, EvaluationRequest, Language, Policy, Tier
from apps.kernels.plain import BadPlain, Plain, from_plain, to_plain
from apps.people.models import Person
from apps.runs import events, wording
from apps.runs.events import Entry
from apps.runs.launch import why_not
from apps.runs.measurements import measurement_of, version_data
from apps.runs.models import Level, Purpose, Version
from apps.runs.refusals import Refused

_KEY = re.compile(r"again:(?P<version>\d+):")
_PRIORITY = 3  # a person waits for it


def measure_again(
    person: Person | None, version: Version, device: Device, tier: Tier = Tier.FULL, priority: int = _PRIORITY
) -> Job:
    """Have `device` judge the version once more; nobody asks where PRAGMA itself does. Raises `Refused` where it can't."""
    run = version.run
    if refusal := why_not(device, Language(run.language)):
        raise Refused(refusal, "device")
    under_way = Job.objects.filter(key__startswith=f"again:{version.pk}:", device=device)
    if under_way.exclude(state__in=[JobState.DONE, JobState.FAILED, JobState.CANCELLED]).exists():
        raise Refused(f"{device} is measuring {version} again already; its result will show here.", "device")
    request = EvaluationRequest(
        problem=run.problem.source,
        candidate=version.source,
        language=Language(run.language),
        policy=Policy(run.policy),
        tier=tier,
        overrides=run.sizing.overrides,
        real_headers="load_inline" in version.source,
        allow_weak_isolation=device.host.weak_isolation_allowed_by_id is not None,
    )
    with transaction.atomic():
        job = jobs.submit(
            key=f"again:{version.pk}:{uuid.uuid4().hex[:12]}",
            kind=JobKind.EVALUATE,
            device=device,
            request=to_plain(request),
            origin=f"run {run.pk} {version}, measured again",
            priority=priority,
            owner=person,
        )
        _log(version, f"{person or 'PRAGMA'} has {version} measured again on {device}")
    return job


@receiver(job_over)
def take_measurement(sender: object, job: Job, **_: Any) -> None:
    """Keep the result as a measurement of its version; called in the transaction that ends the job."""
    named = _KEY.match(job.key)
    if named is None:
        return
    version = Version.objects.select_related("run", "parent").filter(pk=int(named["version"])).first()
    if version is None:
        return
    try:
        evaluation = from_plain(Evaluation, job.result) if job.state == JobState.DONE else None
    except BadPlain as problem:
        evaluation, job.error = None, str(problem)
    if evaluation is None:
        why = job.error or job.get_state_display().lower()
        _log(version, f"{version} could not be measured again on {job.device}: {why}", Level.WARNING)
        return
    measurement = measurement_of(version, job.device_id, Purpose.AGAIN, evaluation, job)
    measurement.asked_by = job.owner
    measurement.save()
    text = wording.version_judged(version.number, "again", evaluation, None) + f" (on {job.device})"
    data: dict[str, Plain] = version_data(version, measurement, version.parent.number if version.parent else None)
    data |= {"purpose": "again", "device": str(job.device), "by": str(job.owner or ""), "is_best": False}
    entry = Entry("remeasured", text, Agent.VERIFIER, "", version.iteration, Level.INFO, data)
    events.append(version.run_id, [entry])


def _log(version: Version, text: str, level: Level = Level.INFO) -> None:
    events.append(version.run_id, [Entry("log", text, Agent.RUN, "", version.iteration, level)])
