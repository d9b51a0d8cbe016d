"""Accepted kernels judged again: on demand, and whenever the host they were accepted on is no longer what it was."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction
from django.db.models.signals import post_save
from django.utils import timezone

from apps.hosts.models import Host, Job
from apps.hosts.signals import host_reported
from apps.kernels.evaluation import Outcome, Tier, Verdict
from apps.people.models import Person
from apps.people.refusals import Refused
from apps.reviews import decisions, environment, evidence
from apps.reviews.environment import differences, environment_of
from apps.reviews.models import AcceptedKernel, Check, DecisionKind, Doubt, KernelState
from apps.runs import remeasure
from apps.runs.models import Measurement, Purpose

log = logging.getLogger(__name__)

_PRIORITY = -1  # after everything that a run or a person waits for


def listen() -> None:
    """Hear of hosts that have changed and of measurements that came."""
    host_reported.connect(look_at_host, dispatch_uid="reviews.look_at_host")
    post_save.connect(take_measurement, sender=Measurement, dispatch_uid="reviews.take_measurement")


def verify(kernel: AcceptedKernel, person: Person | None) -> Job:
    """Have the kernel judged in full once more on its device. Raises `Refused` where that can't be now."""
    if kernel.state == KernelState.REVOKED:
        raise Refused(f"{kernel} is revoked; nothing depends on it any more.")
    priority = {} if person is not None else {"priority": _PRIORITY}
    return remeasure.measure_again(person, kernel.version, kernel.device, Tier.FULL, **priority)


def look_at_host(sender: object, host: Host, **_: Any) -> None:
    """Flag the host's accepted kernels where something their evidence depends on has changed, and queue their check."""
    kernels = AcceptedKernel.objects.filter(device__host=host, state=KernelState.CURRENT)
    for kernel in kernels.select_related("device__host", "version__run__problem", "version__run__sizing"):
        look_at(kernel)


def look_at(kernel: AcceptedKernel) -> None:
    """Flag one kernel where its host is no longer what it was, and queue its check; clear the flag where it is again."""
    host = kernel.device.host
    now = environment_of(host, kernel.device)
    if not now:
        return
    changed = differences(kernel.environment, now)
    detail = f"{host.name} has changed: {', '.join(changed)}" if changed else ""
    flagged = AcceptedKernel.objects.filter(pk=kernel.pk).exclude(doubt=Doubt.FAILED)
    if not changed:
        flagged.filter(doubt=Doubt.ENVIRONMENT).update(doubt=Doubt.NONE, doubt_detail="")
        return
    with transaction.atomic():
        if flagged.exclude(doubt_detail=detail).update(doubt=Doubt.ENVIRONMENT, doubt_detail=detail):
            _record(kernel, DecisionKind.DOUBTED, None, detail, {"environment": now})
    _queue(kernel)


def _queue(kernel: AcceptedKernel) -> None:
    """Ask for the check by itself, unless one waits; a host that can't now is asked again at its next report."""
    if any(job.device_id == kernel.device_id for job in evidence.measuring(kernel.version)):
        return
    if _judged_as_it_is(kernel):
        return
    try:
        verify(kernel, None)
    except Refused as refusal:
        log.info("%s can't be verified now: %s", kernel, refusal.message)


def _judged_as_it_is(kernel: AcceptedKernel) -> bool:
    """Whether its last check was made on the host as it is now; asking once more would tell nothing new."""
    last = kernel.checks.select_related("measurement__device__host").last()
    return last is not None and not differences(
        environment.at(last.measurement), environment_of(kernel.device.host, kernel.device)
    )


def take_measurement(sender: object, instance: Measurement, created: bool, **_: Any) -> None:
    """Keep what the host was; where the version is an accepted kernel on that device, say whether it held."""
    if not created or instance.tier != Tier.FULL.value:
        return
    environment.keep(instance)
    if instance.purpose != Purpose.AGAIN:
        return
    kernels = AcceptedKernel.objects.filter(version_id=instance.version_id, device_id=instance.device_id)
    for kernel in kernels.exclude(state=KernelState.REVOKED).select_related("device__host"):
        _check(kernel, instance)


def _check(kernel: AcceptedKernel, row: Measurement) -> None:
    held = row.verdict == Verdict.CORRECT.value and row.outcome == Outcome.FASTER.value
    detail = _words(row)
    with transaction.atomic():
        Check.objects.create(kernel=kernel, measurement=row, held=held, detail=detail)
        if held:
            changes = {"doubt": Doubt.NONE, "doubt_detail": "", "verified_at": timezone.now()}
            changes["environment"] = environment.at(row)
        else:
            changes = {"doubt": Doubt.FAILED, "doubt_detail": f"Judged again on {kernel.device}: {detail}"}
        AcceptedKernel.objects.filter(pk=kernel.pk).update(**changes)
        kind = DecisionKind.VERIFIED if held else DecisionKind.DOUBTED
        data = {"measurement": row.pk, "speedup": row.speedup, "held": held}
        _record(kernel, kind, row.asked_by, detail, data)


def _words(row: Measurement) -> str:
    if row.verdict != Verdict.CORRECT.value:
        return row.get_verdict_display()
    outcome = row.get_outcome_display() if row.outcome else "not timed"
    return f"{outcome}, {row.speedup:.2f}×" if row.speedup else outcome


def _record(kernel: AcceptedKernel, kind: DecisionKind, by: Person | None, text: str, data: dict[str, Any]) -> None:
    decisions.append(decisions.locked(kernel.proposal_id), kind, by, text, {"kernel": kernel.pk, **data})
