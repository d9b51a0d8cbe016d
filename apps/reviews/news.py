"""Whom a decision concerns, and how they are told."""

from __future__ import annotations

from apps.notices import telling
from apps.notices.models import Kind
from apps.people.models import Person
from apps.reviews.models import VOTES, Comment, Decision, DecisionKind

_TO_REVIEWERS = (DecisionKind.PROPOSED, DecisionKind.REVISED, DecisionKind.ASKED)


def concerned(decision: Decision) -> list[Person]:
    """Who should hear of it: those asked, of what they are asked; else who proposed, voted or wrote. Never who did it."""
    proposal = decision.proposal
    if decision.kind == DecisionKind.ASKED:
        keys = set(decision.data.get("asked", []))
    elif decision.kind in _TO_REVIEWERS:
        keys = set(proposal.asked.values_list("pk", flat=True))
    else:
        keys = {proposal.by_id, *proposal.revisions.values_list("by_id", flat=True)}
        keys |= set(Decision.objects.filter(proposal=proposal, kind__in=VOTES).values_list("by_id", flat=True))
        keys |= set(
            Comment.objects.filter(proposal=proposal, published_at__isnull=False).values_list("by_id", flat=True)
        )
    return list(Person.objects.filter(pk__in=keys - {decision.by_id}, is_active=True))


def tell(decision: Decision) -> None:
    """Tell everyone it concerns, in the transaction that records it."""
    kind = _kind(DecisionKind(decision.kind))
    if kind is None:
        return
    proposal = decision.proposal
    about = f"{proposal.problem} v{proposal.version.number} on {proposal.device}"
    title = f"{decision.by or 'PRAGMA'} {_words(decision)}: {about} ({proposal})"
    telling.tell(
        kind,
        concerned(decision),
        title,
        text=decision.text,
        link=proposal.get_absolute_url(),
        by=decision.by,
        key=f"review:{decision.pk}",
    )


def _words(decision: Decision) -> str:
    if decision.kind == DecisionKind.ASKED:
        return "asks you for a review"
    return DecisionKind(decision.kind).label


def _kind(kind: DecisionKind) -> Kind | None:
    if kind in _TO_REVIEWERS:
        return Kind.REVIEW_ASKED
    if kind is DecisionKind.COMMENTED:
        return Kind.COMMENT
    return None if kind in (DecisionKind.RESOLVED, DecisionKind.REOPENED) else Kind.DECISION
