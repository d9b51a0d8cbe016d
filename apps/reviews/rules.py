"""The team's rules for reviews: how many approvals, and whether one may approve one's own."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from apps.people.models import Person
from apps.people.refusals import Refused
from apps.reviews.models import APPROVALS_LIMIT, Proposal, ProposalState, Rules


def current() -> Rules:
    """The rules in force; the defaults before anybody has set any."""
    return Rules.objects.order_by("pk").first() or Rules()


def change(person: Person, *, approvals: int, own_approval: bool) -> Rules:
    """Set them. Open proposals stand by the new ones at once. Raises `Refused`."""
    from apps.reviews import votes

    if not 1 <= approvals <= APPROVALS_LIMIT:
        raise Refused(f"A kernel needs between 1 and {APPROVALS_LIMIT} approvals.", "approvals")
    with transaction.atomic():
        row = current()
        row.approvals, row.own_approval = approvals, own_approval
        row.changed_by, row.changed_at = person, timezone.now()
        row.save()
        for proposal in Proposal.objects.select_for_update().filter(state=ProposalState.OPEN):
            votes.settle(proposal)
    return row
