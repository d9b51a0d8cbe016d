"""The queue of reviews: what waits for me, what is mine, everything that is open, and what is closed."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import QueryDict

from apps.people.models import Person
from apps.people.permissions import Action, may
from apps.reviews.models import VOTES, Decision, Proposal, ProposalState, Revision, Standing
from apps.reviews.presentation.chips import proposal_chip
from apps.runs.models import Problem
from apps.runs.presentation import figures
from apps.runs.presentation.states import Chip

PER_PAGE = 40
TABS = (("waiting", "Waits for me"), ("mine", "Mine"), ("open", "Open"), ("closed", "Closed"))


@dataclass(frozen=True)
class QueueQuery:
    """What is looked at: a tab, and filters within it."""

    tab: str = "open"
    problem: str = ""
    search: str = ""
    page: str = "1"

    @classmethod
    def read(cls, query: QueryDict) -> QueueQuery:
        """The query of an address."""
        tab = query.get("tab", "")
        tab = tab if tab in dict(TABS) else "open"
        return cls(tab, query.get("problem", ""), query.get("q", "").strip(), query.get("page", "1"))

    @property
    def filtered(self) -> bool:
        """Whether anything narrows the tab."""
        return bool(self.problem or self.search)

    def apply(self, person: Person) -> QuerySet[Proposal]:
        """The proposals that match, what moved last first."""
        found = of_tab(self.tab, person)
        if self.problem:
            found = found.filter(problem__slug=self.problem)
        for word in self.search.split():
            found = found.filter(
                Q(problem__title__icontains=word) | Q(note__icontains=word) | Q(by__username__icontains=word)
            )
        return found.order_by("-moved_at", "-id")


@dataclass(frozen=True)
class QueueRow:
    """One proposal of the list."""

    proposal: Proposal
    chip: Chip
    note: str
    speedup: str
    interval: str
    asked: tuple[str, ...]
    threads: int


def of_tab(tab: str, person: Person) -> QuerySet[Proposal]:
    """The proposals of a tab."""
    everything = Proposal.objects.all()
    match tab:
        case "waiting":
            return waiting_for(person)
        case "mine":
            return everything.filter(by=person)
        case "closed":
            return everything.exclude(state=ProposalState.OPEN)
    return everything.filter(state=ProposalState.OPEN)


def waiting_for(person: Person) -> QuerySet[Proposal]:
    """Open proposals that wait for this person: asked and not voted on this content, or theirs and to be gone on with."""
    is_open = Proposal.objects.filter(state=ProposalState.OPEN)
    mine = Q(by=person, standing__in=(Standing.CHANGES, Standing.APPROVED))
    if not may(person, Action.REVIEW):
        return is_open.filter(mine)
    voted = Decision.objects.filter(proposal=OuterRef("pk"), digest=OuterRef("digest"), by=person, kind__in=VOTES)
    asks = Proposal.asked.through.objects.filter(proposal=OuterRef("pk"))
    of_me = Q(Exists(asks.filter(person=person.pk))) | (~Q(Exists(asks)) & ~Q(by=person))
    return is_open.filter(mine | (of_me & ~Q(Exists(voted))))


def counts(person: Person) -> dict[str, int]:
    """How many are in each open tab."""
    return {tab: of_tab(tab, person).count() for tab, _ in TABS if tab != "closed"}


def rows(proposals: QuerySet[Proposal]) -> list[QueueRow]:
    """Rows with their evidence and whom they wait for, in a fixed number of queries."""
    open_threads = Count(
        "comments",
        filter=Q(comments__parent=None, comments__published_at__isnull=False, comments__resolved_at=None),
        distinct=True,
    )
    related = ("problem", "device__host", "version", "by")
    found = list(proposals.select_related(*related).prefetch_related("asked").annotate(open_threads=open_threads))
    spoke = Revision.objects.filter(proposal__in=found).select_related("measurement").order_by("number")
    latest = {row.proposal_id: row for row in spoke.defer("measurement__evaluation")}
    made = []
    for proposal in found:
        revision = latest[proposal.pk]
        row = revision.measurement
        asked = tuple(str(person) for person in proposal.asked.all())
        interval = figures.interval(row.speedup_low, row.speedup_high)
        made.append(
            QueueRow(
                proposal,
                proposal_chip(proposal),
                revision.note,
                figures.ratio(row.speedup),
                interval,
                asked,
                proposal.open_threads,
            )
        )
    return made


def problems() -> QuerySet[Problem]:
    """Problems that anything was ever proposed for."""
    return Problem.objects.filter(proposals__isnull=False).distinct().order_by("title")
