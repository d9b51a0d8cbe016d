"""Putting a version up for review: what speaks for it on each device, what it would take the place of, whom to ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.hosts.models import Device
from apps.people.models import Person
from apps.people.refusals import Refused
from apps.reviews import evidence, proposing, rules
from apps.runs.models import Measurement, Version
from apps.runs.presentation import figures, launch_page
from apps.runs.presentation.measured import measured
from apps.runs.presentation.states import Chip, outcome_chip, verdict_chip


@dataclass(frozen=True)
class DeviceEvidence:
    """A device, and the version's latest full measurement there."""

    name: str
    model: str
    chosen: bool
    verdict: Chip
    outcome: Chip | None
    speedup: str


def context(version: Version, device: Device, person: Person) -> dict[str, Any]:
    """What the form shows."""
    refusal, warning = "", ""
    try:
        row = evidence.for_proposal(version, device)
        proposing.refuse_the_same(proposing.Slot.of(version, device), version)
        if row.outcome != "faster":
            warning = "It is not shown to be faster than eager: it can be discussed, not accepted."
    except Refused as refused:
        refusal = refused.message
    slot = proposing.Slot.of(version, device)
    return {
        "version": version,
        "run": version.run,
        "device": device,
        "one": measured(version, evidence.evidence_of(version, device).measurement),
        "devices": devices(version, device),
        "refusal": refusal,
        "warning": warning,
        "accepted": slot.accepted(),
        "opened": [proposal for proposal in slot.open_proposals() if proposal.digest != version.digest],
        "reviewers": proposing.possible_reviewers(person),
        "rules": rules.current(),
        "measure_on": [one for one in launch_page.device_choices(version.run.language) if not one.why_not],
        "measuring": evidence.measuring(version),
    }


def devices(version: Version, chosen: Device) -> list[DeviceEvidence]:
    """Devices on which the version was judged in full, and the chosen one."""
    latest: dict[str, tuple[Device, Measurement | None]] = {str(chosen): (chosen, None)}
    rows = version.measurements.filter(tier="full").select_related("device__host").order_by("id")
    for row in rows.defer("evaluation"):
        latest[str(row.device)] = (row.device, row)
    return [_evidence(device, row, device.pk == chosen.pk) for device, row in latest.values()]


def _evidence(device: Device, row: Measurement | None, chosen: bool) -> DeviceEvidence:
    if row is None:
        return DeviceEvidence(str(device), device.model, chosen, Chip("not judged in full", "○"), None, "")
    speedup = figures.speedup(row.speedup, row.speedup_low, row.speedup_high)
    return DeviceEvidence(
        str(device), device.model, chosen, verdict_chip(row.verdict), outcome_chip(row.outcome or None), speedup
    )
