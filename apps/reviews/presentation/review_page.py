"""A review: what is proposed, what speaks for it, how the votes stand, and what each viewer may do now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.people.models import Person
from apps.people.permissions import Action, may
from apps.reviews import accepting, duels, evidence, proposing, votes
from apps.reviews.comments import OldSide
from apps.reviews.models import VOTES, AcceptedKernel, Decision, DecisionKind, Duel, Proposal, Revision, Side
from apps.reviews.presentation.threads import Thread
from apps.runs.models import Measurement, Version
from apps.runs.presentation import figures, version_page
from apps.runs.presentation.measured import Measured, measured
from apps.runs.presentation.version_page import Tile

_NEAR = 1.0


@dataclass(frozen=True)
class Base:
    """Something the proposed text can be held against: its key in the address, its name, its text.

    `old` is the text as a comment on it keeps it: what `accepted` or `parent` means may change.
    """

    key: str
    title: str
    source: str
    old: OldSide


@dataclass(frozen=True)
class Voter:
    """One person's standing: their vote for the content now proposed, an older one, or none yet."""

    person: Person
    vote: Decision | None
    holds: bool

    @property
    def word(self) -> str:
        """How they stand."""
        if self.vote is None:
            return "not voted yet"
        if self.holds:
            return "approved" if self.vote.kind == DecisionKind.APPROVED else "requested changes"
        return f"{said(self.vote)} revision {self.vote.revision}; asked again"


@dataclass(frozen=True)
class Offers:
    """What the viewer may do now; empty texts are no hindrance, others say why not."""

    comment: bool
    vote: bool
    no_approval: str
    accept: bool
    no_acceptance: str
    decline: bool
    withdraw: bool
    revise: bool
    measure: bool
    ask: bool


def offers(proposal: Proposal, person: Person, tally: votes.Tally) -> Offers:
    """What this person may do to the proposal as it stands."""
    is_open, accepts = proposal.is_open, may(person, Action.ACCEPT, proposal)
    mine = person.pk in votes.proposers(proposal)
    return Offers(
        comment=may(person, Action.COMMENT, proposal),
        vote=is_open and may(person, Action.REVIEW, proposal),
        no_approval=votes.why_no_approval(proposal, person) or "",
        accept=is_open and accepts,
        no_acceptance=accepting.why_not(proposal, tally) or "",
        decline=is_open and accepts,
        withdraw=is_open and (mine or may(person, Action.ADMINISTER)),
        revise=is_open and may(person, Action.PROPOSE),
        measure=may(person, Action.REMEASURE, proposal.version),
        ask=is_open and may(person, Action.PROPOSE),
    )


def bases(proposal: Proposal, shown: Revision, accepted: AcceptedKernel | None) -> list[Base]:
    """What the shown revision can be compared with: the accepted kernel, parent, reference, other revisions, and every
    other version that somebody commented on as the old side."""
    version = shown.version
    found = []
    if accepted is not None and accepted.digest != shown.digest:
        found.append(_base("accepted", "accepted {}", accepted.version))
    if version.parent is not None:
        found.append(_base("parent", f"its parent v{version.parent.number}", version.parent))
    found.append(Base("reference", "the reference", proposal.problem.source, OldSide(None)))
    others = proposal.revisions.exclude(pk=shown.pk).select_related("version")
    found += [_base(f"r{one.number}", f"revision {one.number} ({{}})", one.version) for one in others]
    here = {one.old for one in found}
    talked = proposal.comments.filter(side=Side.OLD, base__isnull=False).select_related("base").order_by("base_id")
    for old in dict.fromkeys(OldSide(comment.base) for comment in talked):
        if old.version is not None and old not in here:
            found.append(_base(old.key, "{}", old.version))
    return found


def _base(key: str, title: str, version: Version) -> Base:
    old = OldSide(version)
    return Base(key, title.format(old.name), version.source, old)


def chosen_base(choices: Sequence[Base], key: str) -> Base:
    """The choice with that key, or the one that is the same text as `RUN.NUMBER` names; else the first."""
    named = (one for one in choices if key in (one.key, one.old.key))
    return next(named, choices[0])


def tiles(one: Measured, accepted: AcceptedKernel | None) -> list[Tile]:
    """The evidence in figures, the accepted kernel's beside it."""
    made = version_page.tiles(one)
    if accepted is not None and one.measurement is not None and accepted.version_id != one.version.pk:
        duel = duels.latest(one.version, accepted.version, accepted.device)
        paired = _paired(duel) if duel is not None else None
        made.insert(1, paired or _over_accepted(one.measurement, _latest(accepted)))
    return made


def _paired(duel: Duel) -> Tile | None:
    """The two timed against each other; nothing where that gave no ratio."""
    if not duel.ratio or duel.verdict != "correct":
        return None
    words = {"faster": "faster", "slower": "slower"}.get(duel.outcome, "within noise")
    tone = {"faster": "good", "slower": "bad"}.get(duel.outcome, "")
    interval = figures.interval(duel.low, duel.high)
    return Tile("over the accepted one", figures.ratio(duel.ratio), f"{interval} in pairs: {words}", tone)


def _latest(kernel: AcceptedKernel) -> Measurement:
    """The kernel's latest full measurement on its device."""
    return evidence.evidence_of(kernel.version, kernel.device).measurement or kernel.measurement


def _over_accepted(now: Measurement, before: Measurement) -> Tile:
    """Both were timed against eager, each in its own measurement; the interval takes the far ends of both."""
    name = "over the accepted one"
    if not now.speedup or not before.speedup:
        return Tile(name, figures.NOT_KNOWN, "one of them has no speed-up")
    ratio = now.speedup / before.speedup
    ends = (now.speedup_low, now.speedup_high, before.speedup_low, before.speedup_high)
    if not all(ends):
        return Tile(name, figures.ratio(ratio), "no interval is known")
    low, high = ends[0] / ends[3], ends[1] / ends[2]  # type: ignore[operator]
    beyond = low > _NEAR or high < _NEAR
    tone = ("good" if low > _NEAR else "bad") if beyond else ""
    words = "beyond noise" if beyond else "within noise"
    return Tile(name, figures.ratio(ratio), f"{figures.interval(low, high)} of two measurements, {words}", tone)


def voters(proposal: Proposal) -> list[Voter]:
    """Everyone who was asked or has voted, with their last vote."""
    last: dict[int | None, Decision] = {}
    for vote in proposal.decisions.filter(kind__in=VOTES).select_related("by"):
        last[vote.by_id] = vote
    people = {person.pk: person for person in proposal.asked.all()}
    people |= {vote.by.pk: vote.by for vote in last.values() if vote.by is not None}
    return [
        Voter(person, last.get(pk), pk in last and last[pk].digest == proposal.digest) for pk, person in people.items()
    ]


def seen_before(proposal: Proposal, person: Person) -> Decision | None:
    """The viewer's last word on content that is no longer the one proposed, or None where they are up to date."""
    kinds = (*VOTES, DecisionKind.COMMENTED)
    last = proposal.decisions.filter(by=person, kind__in=kinds).last()
    return last if last is not None and last.digest != proposal.digest else None


def said(decision: Decision) -> str:
    """A vote or comment in words that a revision may follow: `requested changes to`."""
    words = {DecisionKind.APPROVED: "approved", DecisionKind.CHANGES: "requested changes to"}
    return words.get(DecisionKind(decision.kind), "commented on")


def judged(shown: Revision, proposal: Proposal) -> Measured:
    """The revision's version by the evidence that counts now on the proposal's device, or by what it was proposed on."""
    row = evidence.evidence_of(shown.version, proposal.device).measurement or shown.measurement
    return measured(shown.version, row)


def accepted_now(proposal: Proposal) -> AcceptedKernel | None:
    """The kernel that this one would take the place of."""
    found = proposing.slot_of(proposal).accepted()
    return found if found is not None and found.proposal_id != proposal.pk else None


def unresolved(threads: Sequence[Thread]) -> int:
    """How many published threads are not done with."""
    return sum(not thread.is_resolved and not thread.root.is_draft for thread in threads)


def stamp(proposal: Proposal) -> str:
    """Changes whenever anything that the page shows has changed."""
    last = proposal.version.measurements.order_by("-id").values_list("pk", flat=True).first()
    fought = Duel.objects.filter(version=proposal.version).count()
    waiting = len(evidence.measuring(proposal.version)) + len(duels.under_way(proposal.version))
    return f"{proposal.moved_at.timestamp():.6f}-{last or 0}-{fought}-{waiting}"
