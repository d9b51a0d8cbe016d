"""Votes: each holds for one content hash. What a person wrote as drafts is published with the vote."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from apps.people.models import Person
from apps.people.permissions import Action, may
from apps.people.refusals import Refused
from apps.reviews import decisions, rules
from apps.reviews.models import VOTES, Comment, Decision, DecisionKind, Proposal, Standing

_WORDS = {
    "approve": DecisionKind.APPROVED,
    "changes": DecisionKind.CHANGES,
    "comment": DecisionKind.COMMENTED,
}


@dataclass(frozen=True)
class Tally:
    """The votes that hold for the content now proposed, each person's last one, and how many approvals are needed."""

    approvals: tuple[Decision, ...]
    changes: tuple[Decision, ...]
    needed: int

    @property
    def standing(self) -> Standing:
        """What they amount to: one request for changes outweighs any number of approvals."""
        if self.changes:
            return Standing.CHANGES
        return Standing.APPROVED if len(self.approvals) >= self.needed else Standing.WAITING


def tally(proposal: Proposal) -> Tally:
    """The votes for the digest that is proposed now, by the rules in force now."""
    in_force = rules.current()
    found = Decision.objects.filter(proposal=proposal, digest=proposal.digest, kind__in=VOTES).select_related("by")
    last = {vote.by_id: vote for vote in found.order_by("id")}
    own = set() if in_force.own_approval else proposers(proposal)
    approvals = [v for v in last.values() if v.kind == DecisionKind.APPROVED and v.by_id not in own]
    changes = [v for v in last.values() if v.kind == DecisionKind.CHANGES]
    return Tally(tuple(approvals), tuple(changes), in_force.approvals)


def proposers(proposal: Proposal) -> set[int | None]:
    """Everyone whose work it is: who proposed it or any of its revisions."""
    return {proposal.by_id, *proposal.revisions.values_list("by_id", flat=True)}


def settle(proposal: Proposal) -> Standing:
    """Write down how the votes stand, within the transaction that changed them."""
    standing = tally(proposal).standing
    Proposal.objects.filter(pk=proposal.pk).update(standing=standing)
    proposal.standing = standing
    return standing


def why_no_approval(proposal: Proposal, person: Person) -> str | None:
    """Why this person can't approve it, or None where they can."""
    if not may(person, Action.REVIEW, proposal):
        return "Your role does not allow you to vote. A reviewer of your team can."
    if not rules.current().own_approval and person.pk in proposers(proposal):
        return "You proposed this yourself, so somebody else has to approve it (a rule of your team)."
    return None


def vote(proposal_id: int, person: Person, word: str, digest: str, text: str = "") -> Decision:
    """Approve, request changes or just comment, and publish what the person wrote as drafts.

    `digest` is the content the person looked at: where another one is proposed by now, nothing is voted. Raises
    `Refused`.
    """
    kind = _WORDS.get(word)
    if kind is None:
        raise Refused("A vote is approve, changes or comment.", "vote")
    text = decisions.text_of(text)
    with transaction.atomic():
        proposal = decisions.held_open(proposal_id, "vote on it")
        _check(proposal, person, kind, digest)
        drafts = Comment.objects.filter(proposal=proposal, by=person, published_at=None)
        published = drafts.update(published_at=timezone.now())
        if kind is not DecisionKind.APPROVED and not text and not published:
            what = "what has to change" if kind is DecisionKind.CHANGES else "something"
            raise Refused(f"Say {what}: in the text, or as a comment on a line.", "text")
        data = {"comments": published, "needed": rules.current().approvals, "measurement": _evidence(proposal)}
        decision = decisions.append(proposal, kind, person, text, data)
        settle(proposal)
    return decision


def _check(proposal: Proposal, person: Person, kind: DecisionKind, digest: str) -> None:
    if digest != proposal.digest:
        raise Refused(
            f"A new version was proposed while you were looking: it is content {proposal.digest[:8]} now, "
            f"your vote was for {digest[:8] or 'none'}. Your drafts are kept. Look at what changed, and vote again."
        )
    if kind is DecisionKind.COMMENTED:
        return
    if kind is DecisionKind.CHANGES and not may(person, Action.REVIEW, proposal):
        raise Refused("Your role does not allow you to vote. Send it as a comment; a reviewer can request changes.")
    if kind is DecisionKind.APPROVED and (why := why_no_approval(proposal, person)):
        raise Refused(why)


def _evidence(proposal: Proposal) -> int | None:
    from apps.reviews.evidence import evidence_of

    row = evidence_of(proposal.version, proposal.device).measurement
    return row.pk if row else None
