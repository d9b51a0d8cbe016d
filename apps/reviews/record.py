"""The record of a decision as plain data: what was proposed, said, voted and decided, for exports and REST."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from apps.kernels.plain import Plain
from apps.reviews.comments import OldSide
from apps.reviews.models import Comment, Decision, Proposal, Revision
from apps.runs.wire import instant


@dataclass(frozen=True)
class Said:
    """A published comment; `lines` are the first and last of its revision's source, or of `base` (RUN.NUMBER or
    reference), which it was compared with; `reply_to` is a comment's id."""

    id: int
    revision: int
    lines: tuple[int, int] | None
    reply_to: int | None
    by: str
    at: str | None
    text: str
    resolved_by: str | None
    base: str | None = None


@dataclass(frozen=True)
class Decided:
    """One entry of the record. `by` is null where PRAGMA itself found it."""

    kind: str
    revision: int
    digest: str
    by: str | None
    at: str | None
    text: str
    data: dict[str, Plain]


@dataclass(frozen=True)
class Proposed:
    """One revision: which version of which run, its content's SHA-256, the measurement that spoke for it."""

    number: int
    run: int
    version: int
    digest: str
    measurement: int
    note: str
    by: str
    at: str | None


@dataclass(frozen=True)
class Record:
    """Everything that was decided about a proposal, oldest first."""

    proposal: int
    problem: str
    problem_digest: str
    overrides: dict[str, Plain]
    device: str
    language: str
    state: str
    revisions: tuple[Proposed, ...] = ()
    decisions: tuple[Decided, ...] = ()
    comments: tuple[Said, ...] = ()
    schema: int = field(default=1)


def record_of(proposal: Proposal) -> Record:
    """The record of a proposal as everybody may read it: drafts are not in it."""
    comments = proposal.comments.filter(published_at__isnull=False).select_related(
        "by", "revision", "resolved_by", "base"
    )
    return Record(
        proposal=proposal.pk,
        problem=proposal.problem.title,
        problem_digest=proposal.problem.digest,
        overrides=proposal.sizing.overrides,
        device=str(proposal.device),
        language=proposal.language,
        state=proposal.state,
        revisions=tuple(_proposed(row) for row in proposal.revisions.select_related("by", "version")),
        decisions=tuple(_decided(row) for row in proposal.decisions.select_related("by")),
        comments=tuple(_said(row) for row in comments),
    )


def _proposed(row: Revision) -> Proposed:
    return Proposed(
        row.number,
        row.version.run_id,
        row.version.number,
        row.digest,
        row.measurement_id,
        row.note,
        str(row.by),
        _at(row.at),
    )


def _decided(row: Decision) -> Decided:
    by = str(row.by) if row.by else None
    # Whom it asked stands in its text, by name; their numbers here mean nothing elsewhere.
    data = {name: value for name, value in row.data.items() if name != "asked"}
    return Decided(row.kind, row.revision, row.digest, by, _at(row.at), row.text, data)


def _said(row: Comment) -> Said:
    lines = (row.first_line, row.last_line) if row.first_line and row.last_line else None
    resolved = str(row.resolved_by) if row.resolved_by else None
    base = OldSide(row.base).key if row.is_on_old_side else None
    said = (row.parent_id, str(row.by), _at(row.published_at), row.text, resolved, base)
    return Said(row.pk, row.revision.number, lines, *said)


def _at(moment: datetime | None) -> str | None:
    return instant(moment)
