"""Putting a version up for review, putting another one in its place, asking people, and taking it back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction

from apps.hosts.models import Device
from apps.people.models import Person
from apps.people.permissions import Action, may
from apps.people.refusals import Refused
from apps.reviews import decisions, evidence, votes
from apps.reviews.models import (
    VOTES,
    AcceptedKernel,
    Decision,
    DecisionKind,
    KernelState,
    Proposal,
    ProposalState,
    Revision,
)
from apps.runs.models import Measurement, Problem, Version


@dataclass(frozen=True)
class Slot:
    """What one accepted kernel at a time is in use for."""

    problem_id: int
    sizing_id: int
    device_id: int
    language: str

    @classmethod
    def of(cls, version: Version, device: Device) -> Slot:
        """The slot that a version would fill on a device."""
        run = version.run
        return cls(run.problem_id, run.sizing_id, device.pk, run.language)

    def columns(self) -> dict[str, int | str]:
        """As filters."""
        return dict(vars(self))

    def accepted(self) -> AcceptedKernel | None:
        """The kernel in use now."""
        found = AcceptedKernel.objects.filter(**self.columns(), state=KernelState.CURRENT)
        return found.select_related("version__run__problem", "measurement", "device__host", "by").first()

    def hold(self) -> None:
        """Let one person at a time decide about the problem, until the open transaction ends."""
        Problem.objects.select_for_update().get(pk=self.problem_id)

    def open_proposals(self) -> list[Proposal]:
        """What is under review for it, newest first."""
        found = Proposal.objects.filter(**self.columns(), state=ProposalState.OPEN)
        return list(found.select_related("version", "by"))


def slot_of(proposal: Proposal) -> Slot:
    """What the proposal would be used for."""
    return Slot(proposal.problem_id, proposal.sizing_id, proposal.device_id, proposal.language)


def propose(
    person: Person, version: Version, device: Device | None = None, note: str = "", asked: Iterable[Person] = ()
) -> Proposal:
    """Put the version up for review on `device` (its run's where none is given). Raises `Refused`; then nothing is made."""
    device = device or version.run.device
    note = decisions.text_of(note, "note")
    slot = Slot.of(version, device)
    with transaction.atomic():
        slot.hold()
        measurement = evidence.for_proposal(version, device)
        refuse_the_same(slot, version)
        proposal = Proposal.objects.create(
            **slot.columns(), version=version, digest=version.digest, note=note, by=person
        )
        _revision(proposal, measurement, person, note)
        decisions.append(proposal, DecisionKind.PROPOSED, person, note, _said(measurement))
        people = _reviewers(proposal, asked)
        if people:
            _ask(proposal, person, people)
        decisions.log(proposal, f"{person} proposes v{version.number} for {device} ({proposal})")
    return proposal


def revise(proposal_id: int, person: Person, version: Version, note: str = "") -> Revision:
    """Propose another version in place of the one under review: votes for other content no longer hold, and those who
    voted or were asked are asked again. Raises `Refused`."""
    note = decisions.text_of(note, "note")
    with transaction.atomic():
        proposal = decisions.held_open(proposal_id, "propose another version in it")
        if Slot.of(version, proposal.device) != slot_of(proposal):
            raise Refused(
                f"{proposal} is about {proposal.problem} in {proposal.language} at other sizes, or another problem. "
                "Propose this version by itself.",
                "version",
            )
        if version.digest == proposal.digest:
            raise Refused(f"v{version.number} is the same text that is under review already.", "version")
        measurement = evidence.for_proposal(version, proposal.device)
        number = proposal.revision + 1
        Proposal.objects.filter(pk=proposal.pk).update(version=version, digest=version.digest, revision=number)
        proposal.version, proposal.digest, proposal.revision = version, version.digest, number
        revision = _revision(proposal, measurement, person, note)
        decisions.append(proposal, DecisionKind.REVISED, person, note, _said(measurement))
        voters = Decision.objects.filter(proposal=proposal, kind__in=VOTES).values_list("by_id", flat=True)
        proposal.asked.add(*Person.objects.filter(pk__in=[v for v in voters if v], is_active=True))
        votes.settle(proposal)
        decisions.log(proposal, f"{person} proposes v{version.number} in {proposal}, revision {number}")
    return revision


def ask(proposal_id: int, person: Person, asked: Iterable[Person]) -> list[Person]:
    """Ask more people to review it; those who are newly asked. Raises `Refused`."""
    with transaction.atomic():
        proposal = decisions.held_open(proposal_id, "ask anybody about it")
        people = _reviewers(proposal, asked)
        if not people:
            raise Refused("Choose whom to ask: people who may vote and have not been asked yet.", "asked")
        _ask(proposal, person, people)
    return people


def withdraw(proposal_id: int, person: Person, text: str = "") -> None:
    """Take it back. Who proposed it may, and an admin. Raises `Refused`."""
    text = decisions.text_of(text)
    with transaction.atomic():
        proposal = decisions.held_open(proposal_id, "withdraw it")
        if person.pk not in votes.proposers(proposal) and not may(person, Action.ADMINISTER):
            raise Refused(f"Only {proposal.by}, who proposed it, or an admin can withdraw it.")
        Proposal.objects.filter(pk=proposal.pk).update(state=ProposalState.WITHDRAWN)
        decisions.append(proposal, DecisionKind.WITHDRAWN, person, text)


def possible_reviewers(proposer: Person | None = None) -> list[Person]:
    """Everyone who may vote, the proposer left out."""
    active = Person.objects.filter(is_active=True)
    return [p for p in active if may(p, Action.REVIEW) and (proposer is None or p.pk != proposer.pk)]


def _reviewers(proposal: Proposal, asked: Iterable[Person]) -> list[Person]:
    """Those of `asked` who may vote and are new. Raises `Refused` for one who may not."""
    known = set(proposal.asked.values_list("pk", flat=True))
    people = []
    for person in asked:
        if not may(person, Action.REVIEW, proposal):
            raise Refused(f"{person} can't vote: their role does not allow it. Choose a reviewer.", "asked")
        if person.pk not in known and person.pk != proposal.by_id:
            people.append(person)
    return people


def _ask(proposal: Proposal, by: Person, people: list[Person]) -> None:
    proposal.asked.add(*people)
    names = ", ".join(str(person) for person in people)
    decisions.append(proposal, DecisionKind.ASKED, by, names, {"asked": [person.pk for person in people]})


def _revision(proposal: Proposal, measurement: Measurement, person: Person, note: str) -> Revision:
    return Revision.objects.create(
        proposal=proposal,
        number=proposal.revision,
        version=proposal.version,
        digest=proposal.digest,
        measurement=measurement,
        note=note,
        by=person,
    )


def _said(measurement: Measurement) -> dict[str, int | float | str | None]:
    """The evidence in short, kept with the decision."""
    return {
        "measurement": measurement.pk,
        "outcome": measurement.outcome,
        "speedup": measurement.speedup,
        "speedup_low": measurement.speedup_low,
        "speedup_high": measurement.speedup_high,
    }


def refuse_the_same(slot: Slot, version: Version) -> None:
    """Raise `Refused` where the same text is under review or in use already."""
    for other in slot.open_proposals():
        if other.digest == version.digest:
            raise Refused(f"The same text is under review already: {other}. Comment there.", "version")
    accepted = slot.accepted()
    if accepted is not None and accepted.digest == version.digest:
        raise Refused(f"The same text is the accepted kernel already ({accepted}).", "version")
