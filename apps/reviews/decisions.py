"""The record of a proposal: every decision is appended here, in the transaction that carries it out."""

from __future__ import annotations

from typing import NoReturn

from django.utils import timezone

from apps.agents.words import Agent
from apps.kernels.plain import Plain
from apps.people import audit
from apps.people.models import Person
from apps.people.refusals import Refused
from apps.reviews import news
from apps.reviews.models import Decision, DecisionKind, Proposal, ProposalState
from apps.runs import bell, events
from apps.runs.events import Entry

LONGEST_TEXT = 20_000
_AUDITED = 300  # characters of what was written; all of it stands with the decision


def append(
    proposal: Proposal, kind: DecisionKind, by: Person | None, text: str = "", data: dict[str, Plain] | None = None
) -> Decision:
    """Record it for the content now proposed, mark the proposal as moved, tell who is concerned."""
    decision = Decision.objects.create(
        proposal=proposal,
        kind=kind,
        revision=proposal.revision,
        digest=proposal.digest,
        by=by,
        text=text,
        data=data or {},
    )
    Proposal.objects.filter(pk=proposal.pk).update(moved_at=timezone.now())
    audit.record(f"review.{kind.value}", by, proposal, detail=text[:_AUDITED])
    bell.ring_on_commit()
    news.tell(decision)
    return decision


def log(proposal: Proposal, text: str) -> None:
    """Say it in the log of the run that the version comes from."""
    entry = Entry("log", text, Agent.RUN, "", proposal.version.iteration)
    events.append(proposal.version.run_id, [entry])


def locked(pk: int) -> Proposal:
    """The proposal as it is now, held until the open transaction ends."""
    held = Proposal.objects.select_for_update(of=("self",))
    return held.select_related("problem", "sizing", "device__host", "version__run", "by").get(pk=pk)


def held_open(pk: int, deed: str) -> Proposal:
    """The same, where it is open. Raises `Refused` saying why nothing can be done to it any more."""
    proposal = locked(pk)
    if not proposal.is_open:
        refuse_closed(proposal, deed)
    return proposal


def refuse_closed(proposal: Proposal, deed: str) -> NoReturn:
    """Raise that it is over."""
    words = {
        ProposalState.ACCEPTED: "has been accepted",
        ProposalState.DECLINED: "has been declined",
        ProposalState.WITHDRAWN: "was withdrawn",
    }
    word = words[ProposalState(proposal.state)]
    raise Refused(f"{proposal} {word}, so you can't {deed} any more. Propose the version anew to take it up again.")


def text_of(text: str, field: str = "text") -> str:
    """What a person wrote, trimmed. Raises `Refused` where it is too long."""
    kept = text.replace("\r\n", "\n").replace("\x00", "").strip()
    if len(kept) > LONGEST_TEXT:
        raise Refused(f"That is {len(kept)} characters; {LONGEST_TEXT} are kept at most. Shorten it.", field)
    return kept
