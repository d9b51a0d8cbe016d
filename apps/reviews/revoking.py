"""Taking an accepted kernel out of use, with the reason."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from apps.people.models import Person
from apps.people.refusals import Refused
from apps.reviews import decisions
from apps.reviews.models import AcceptedKernel, DecisionKind, KernelState


def revoke(kernel_id: int, person: Person, reason: str) -> AcceptedKernel:
    """The kernel is no longer in use, and nothing takes its place by itself. Raises `Refused`."""
    reason = decisions.text_of(reason, "reason")
    if not reason:
        raise Refused("Say why: whoever used the kernel will want to know.", "reason")
    with transaction.atomic():
        kernel = AcceptedKernel.objects.select_for_update().get(pk=kernel_id)
        changed = AcceptedKernel.objects.filter(pk=kernel.pk).exclude(state=KernelState.REVOKED)
        if not changed.update(state=KernelState.REVOKED, reason=reason, ended_at=timezone.now()):
            raise Refused(f"{kernel} is revoked already: {kernel.reason}")
        proposal = decisions.locked(kernel.proposal_id)
        decisions.append(proposal, DecisionKind.REVOKED, person, reason, {"kernel": kernel.pk, "was": kernel.state})
        decisions.log(proposal, f"{person} revokes v{proposal.version.number} ({kernel})")
    kernel.refresh_from_db()
    return kernel
