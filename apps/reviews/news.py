"""Whom a decision concerns, and how they are told."""

from __future__ import annotations

from django.urls import reverse

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
        answer_for_it = Decision.objects.filter(proposal=proposal, kind__in=(*VOTES, DecisionKind.ACCEPTED))
        keys |= set(answer_for_it.values_list("by_id", flat=True))
        keys |= set(
            Comment.objects.filter(proposal=proposal, published_at__isnull=False).values_list("by_id", flat=True)
        )
    who_did_it = set() if _is_found(decision) else {decision.by_id}
    return list(Person.objects.filter(pk__in=keys - who_did_it, is_active=True))


def tell(decision: Decision) -> None:
    """Tell everyone it concerns, in the transaction that records it."""
    kind = _kind(DecisionKind(decision.kind))
    if kind is None:
        return
    proposal = decision.proposal
    about = f"{proposal.problem} v{proposal.version.number} on {proposal.device}"
    who = "PRAGMA" if _is_found(decision) else decision.by or "PRAGMA"
    title = f"{who} {_words(decision)}: {about} ({proposal})"
    telling.tell(
        kind,
        concerned(decision),
        title,
        text=decision.text,
        link=_link(decision),
        by=None if _is_found(decision) else decision.by,
        key=f"review:{decision.pk}",
    )


def _words(decision: Decision) -> str:
    if decision.kind == DecisionKind.ASKED:
        return "asks you for a review"
    if decision.kind == DecisionKind.DOUBTED:
        return "judged it again, and it no longer holds" if _is_found(decision) else "flagged it, its host has changed"
    return DecisionKind(decision.kind).label


def _is_found(decision: Decision) -> bool:
    """Whether it is a finding of a judgement, whoever asked for that: then they are told too."""
    return "held" in decision.data


def _link(decision: Decision) -> str:
    """What was found of an accepted kernel stands on its page, everything else on the review's."""
    kernel = decision.data.get("kernel")
    if decision.kind in (DecisionKind.DOUBTED, DecisionKind.VERIFIED) and isinstance(kernel, int):
        return reverse("kernel", args=[kernel])
    return decision.proposal.get_absolute_url()


def _kind(kind: DecisionKind) -> Kind | None:
    if kind in _TO_REVIEWERS:
        return Kind.REVIEW_ASKED
    if kind is DecisionKind.COMMENTED:
        return Kind.COMMENT
    return None if kind in (DecisionKind.RESOLVED, DecisionKind.REOPENED) else Kind.DECISION
