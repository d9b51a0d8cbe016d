"""Measuring what is proposed again, on hosts of one's choice, before it is decided about."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from apps.hosts.models import Device, Job
from apps.people.models import Person
from apps.people.refusals import Refused
from apps.reviews import duels, proposing
from apps.reviews.models import Proposal
from apps.runs import remeasure


def measure(
    person: Person, proposal: Proposal, devices: Sequence[Device], *, against_accepted: bool = False
) -> list[Job]:
    """Have each of the devices judge it in full once more, or time it against the accepted kernel. All of them or none.

    Raises `Refused`.
    """
    if not devices:
        raise Refused("Choose the hosts that are to measure it again.", "device")
    accepted = None
    if against_accepted:
        accepted = proposing.slot_of(proposal).accepted()
        if accepted is None or accepted.proposal_id == proposal.pk:
            raise Refused(
                "Nothing else is accepted for this yet that it could be timed against. Measure it again instead."
            )
    with transaction.atomic():
        if accepted is not None:
            return [duels.ask(person, proposal.version, accepted.version, device) for device in devices]
        return [remeasure.measure_again(person, proposal.version, device) for device in devices]
