"""What speaks for a version on a device: its latest full measurement there, and what contradicts it anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.hosts.models import Device, Job, JobState
from apps.kernels.evaluation import Outcome, Tier, Verdict
from apps.people.refusals import Refused
from apps.runs import wording
from apps.runs.models import Measurement, Purpose, Version

# Verdicts that say something of the kernel itself. What does not build or crashes on another host may be that host.
_WRONG = (Verdict.INCORRECT.value, Verdict.REJECTED.value)
_LIVE_JOBS = (JobState.WAITING, JobState.SENT, JobState.RUNNING)


class NeedsFullMeasurement(Refused):
    """There is no evidence yet that could be reviewed; a full measurement on `device` would be."""

    def __init__(self, message: str, version: Version, device: Device) -> None:
        super().__init__(message, "version")
        self.version = version
        self.device = device


@dataclass(frozen=True)
class Evidence:
    """The measurement that counts for a version on a device, and a measurement elsewhere that speaks against it."""

    measurement: Measurement | None
    against: Measurement | None = None

    @property
    def is_full_and_correct(self) -> bool:
        """Whether it could be proposed."""
        return self.measurement is not None and self.measurement.verdict == Verdict.CORRECT.value

    @property
    def is_faster(self) -> bool:
        """Whether it could be accepted: judged faster in full, and nothing says that it is wrong."""
        row = self.measurement
        return self.is_full_and_correct and row is not None and row.outcome == Outcome.FASTER.value and not self.against


def evidence_of(version: Version, device: Device) -> Evidence:
    """What is known of the version on that device now."""
    rows = version.measurements.exclude(purpose=Purpose.RIVAL).select_related("device__host").order_by("id")
    return _weigh(rows, device)


def _weigh(rows: Iterable[Measurement], device: Device) -> Evidence:
    latest: dict[int, Measurement] = {}
    full: Measurement | None = None
    for row in rows:
        latest[row.device_id] = row
        if row.device_id == device.pk and row.tier == Tier.FULL.value:
            full = row
    wrong = next((row for row in latest.values() if row.verdict in _WRONG), None)
    return Evidence(full, wrong)


def for_proposal(version: Version, device: Device) -> Measurement:
    """The measurement a proposal stands on. Raises `Refused` saying what is missing and what to do."""
    found = evidence_of(version, device)
    row, name = found.measurement, f"v{version.number}"
    if device.retired:
        raise Refused(
            f"{device} is no device of this installation (any more), so what was measured there can't be measured again "
            f"here. Have {name} measured again in full on a device that is here, and propose it for that one.",
            "device",
        )
    if row is None:
        raise NeedsFullMeasurement(
            f"{name} has not been judged in full on {device}, so there is nothing to review yet. "
            "Have it measured again in full there, then propose it.",
            version,
            device,
        )
    if found.against is not None:
        raise Refused(_contradiction(version, found.against), "version")
    if row.verdict != Verdict.CORRECT.value:
        raise NeedsFullMeasurement(
            f"{name} was judged {row.get_verdict_display()} in full on {device}. "
            "Propose a version that is correct, or have this one measured again in full.",
            version,
            device,
        )
    if row.outcome == Outcome.SLOWER.value:
        raise Refused(
            f"{name} is slower than eager on {device} ({_speed(row)}): there is nothing to gain by it.", "version"
        )
    return row


def for_acceptance(version: Version, device: Device) -> Measurement:
    """The measurement a kernel is accepted on. Raises `Refused` saying what is missing and what to do."""
    row = for_proposal(version, device)
    if row.outcome != Outcome.FASTER.value:
        raise NeedsFullMeasurement(
            f"v{version.number} is not shown to be faster than eager on {device}: its full measurement says "
            f"{_speed(row)}, within noise. Only a version judged faster in full is accepted. "
            "Have it measured again in full, or request changes.",
            version,
            device,
        )
    return row


def measuring(version: Version) -> list[Job]:
    """Measurements of the version that are asked for and not there yet."""
    jobs = Job.objects.filter(key__startswith=f"again:{version.pk}:", state__in=_LIVE_JOBS)
    return list(jobs.select_related("device__host", "owner"))


def _speed(row: Measurement) -> str:
    if row.speedup is None:
        return "no speed-up"
    interval = f" [{row.speedup_low:.2f}, {row.speedup_high:.2f}]" if row.speedup_low and row.speedup_high else ""
    return f"{wording.times(row.speedup)}{interval}"


def _contradiction(version: Version, row: Measurement) -> str:
    return (
        f"{row.device} judged v{version.number} {row.get_verdict_display()} (measurement {row.pk}): a kernel that is "
        "wrong on one host is not put to use on another. Mend it, or have it measured again there."
    )
