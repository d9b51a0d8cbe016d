"""Accepting a proposal: its kernel is in use from then on, and the one before it is superseded. Declining one."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from apps.people.models import Person
from apps.people.refusals import Refused
from apps.reviews import decisions, environment, evidence, verifying, votes
from apps.reviews.models import AcceptedKernel, DecisionKind, KernelState, Proposal, ProposalState, Standing
from apps.reviews.proposing import slot_of


def accept(proposal_id: int, person: Person, digest: str, text: str = "") -> AcceptedKernel:
    """Put the proposed version to use. `digest` is the content the person looked at. Raises `Refused`."""
    text = decisions.text_of(text)
    with transaction.atomic():
        proposal = decisions.held_open(proposal_id, "accept it")
        if digest != proposal.digest:
            raise Refused(f"Another version is proposed by now (content {proposal.digest[:8]}). Look at it first.")
        slot_of(proposal).hold()
        _check_votes(proposal)
        measurement = evidence.for_acceptance(proposal.version, proposal.device)
        before = slot_of(proposal).accepted()
        if before is not None:
            ended = {"state": KernelState.SUPERSEDED, "ended_at": timezone.now()}
            AcceptedKernel.objects.filter(pk=before.pk).update(**ended)
        kernel = AcceptedKernel.objects.create(
            **slot_of(proposal).columns(),
            proposal=proposal,
            version=proposal.version,
            digest=proposal.digest,
            measurement=measurement,
            by=person,
            environment=environment.at(measurement),
        )
        Proposal.objects.filter(pk=proposal.pk).update(state=ProposalState.ACCEPTED)
        said = _record(proposal, kernel)
        if before is not None:
            AcceptedKernel.objects.filter(pk=before.pk).update(superseded_by=kernel)
            said["supersedes"] = before.pk
            decisions.append(before.proposal, DecisionKind.SUPERSEDED, person, "", {"by": kernel.pk})
        decisions.append(proposal, DecisionKind.ACCEPTED, person, text, said)
        decisions.log(proposal, f"{person} accepts v{proposal.version.number} for {proposal.device} ({kernel})")
        verifying.look_at(kernel)
    return kernel


def decline(proposal_id: int, person: Person, text: str) -> None:
    """Close it without putting it to use. Raises `Refused`."""
    text = decisions.text_of(text)
    if not text:
        raise Refused("Say why it is declined: it is kept with the decision.", "text")
    with transaction.atomic():
        proposal = decisions.held_open(proposal_id, "decline it")
        Proposal.objects.filter(pk=proposal.pk).update(state=ProposalState.DECLINED)
        decisions.append(proposal, DecisionKind.DECLINED, person, text)


def why_not(proposal: Proposal, tally: votes.Tally) -> str | None:
    """Why the votes don't allow it to be accepted yet, or None where they do."""
    if tally.standing is Standing.CHANGES:
        names = ", ".join(str(vote.by) for vote in tally.changes)
        return f"{names} requested changes. Propose a new version, or have them approve this one."
    missing = tally.needed - len(tally.approvals)
    if missing > 0:
        return f"It needs {missing} more approval{'s' * (missing != 1)} of content {proposal.digest[:8]}."
    return None


def _check_votes(proposal: Proposal) -> None:
    if why := why_not(proposal, votes.tally(proposal)):
        raise Refused(why)


def _record(proposal: Proposal, kernel: AcceptedKernel) -> dict[str, object]:
    """What was in force when it was decided."""
    tally, row = votes.tally(proposal), kernel.measurement
    return {
        "kernel": kernel.pk,
        "measurement": row.pk,
        "speedup": row.speedup,
        "speedup_low": row.speedup_low,
        "speedup_high": row.speedup_high,
        "approved_by": [str(vote.by) for vote in tally.approvals],
        "needed": tally.needed,
        "environment": kernel.environment,
    }
