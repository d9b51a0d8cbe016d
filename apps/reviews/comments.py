"""Comments: drafts that their author alone sees, published with a vote or at once; threads that are resolved."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from apps.people.models import Person
from apps.people.refusals import Refused
from apps.reviews import decisions
from apps.reviews.models import Comment, DecisionKind, Proposal, Revision, Side
from apps.runs.models import Version

REFERENCE = "reference"


@dataclass(frozen=True)
class OldSide:
    """What the lines of a comment belong to where they are not the proposal's: a version, or the reference (None)."""

    version: Version | None

    @property
    def key(self) -> str:
        """As forms and REST name it: `RUN.NUMBER`, or `reference`."""
        return f"{self.version.run_id}.{self.version.number}" if self.version is not None else REFERENCE

    @property
    def name(self) -> str:
        """As people read it."""
        return f"run {self.version.run_id} v{self.version.number}" if self.version is not None else "the reference"

    @classmethod
    def named(cls, key: str) -> OldSide:
        """The text with that key. Raises `Refused`."""
        if key == REFERENCE:
            return cls(None)
        run, _, number = key.partition(".")
        found = None
        if run.isdecimal() and number.isdecimal() and len(key) < 20:
            found = Version.objects.select_related("run").filter(run_id=int(run), number=int(number)).first()
        if found is None:
            raise Refused(f"There is no version {key[:40]!r} to comment on. Name it RUN.NUMBER, or reference.", "base")
        return cls(found)


def write(
    proposal_id: int,
    person: Person,
    text: str,
    *,
    lines: tuple[int, int] | None = None,
    old: OldSide | None = None,
    parent: int | None = None,
    revision: int | None = None,
) -> Comment:
    """Keep a draft: on `lines` (first and last, from 1) of a revision (the latest), on the whole, or in reply.

    With `old` they are lines of the text that the revision was compared with. Raises `Refused`.
    """
    text = _text(text)
    with transaction.atomic():
        proposal = decisions.locked(proposal_id)
        if parent is not None:
            thread = _thread(proposal, parent)
            return Comment.objects.create(
                proposal=proposal, revision=thread.revision, parent=thread, text=text, by=person
            )
        about = _revision(proposal, revision)
        comment = Comment(proposal=proposal, revision=about, text=text, by=person)
        if lines:
            _place(comment, lines, old)
        comment.save()
        return comment


def rewrite(comment_id: int, person: Person, text: str) -> Comment:
    """Change one's own draft. What is published stays as it was written. Raises `Refused`."""
    text = _text(text)
    with transaction.atomic():
        comment = _own_draft(comment_id, person)
        Comment.objects.filter(pk=comment.pk).update(text=text, written_at=timezone.now())
    comment.text = text
    return comment


def discard(comment_id: int, person: Person) -> None:
    """Throw one's own draft away. Raises `Refused`."""
    with transaction.atomic():
        _own_draft(comment_id, person).delete()


def publish(comment_id: int, person: Person) -> Comment:
    """Publish one draft without a vote: a reply that should not wait. Raises `Refused`."""
    with transaction.atomic():
        comment = _own_draft(comment_id, person)
        proposal = decisions.locked(comment.proposal_id)
        comment.published_at = timezone.now()
        comment.save(update_fields=["published_at"])
        decisions.append(proposal, DecisionKind.COMMENTED, person, "", {"comments": 1, "comment": comment.pk})
    return comment


def resolve(comment_id: int, person: Person) -> Comment:
    """Say that a thread is done with. Raises `Refused`."""
    return _set_resolved(comment_id, person, done=True)


def reopen(comment_id: int, person: Person) -> Comment:
    """Say that it is not. Raises `Refused`."""
    return _set_resolved(comment_id, person, done=False)


def _set_resolved(comment_id: int, person: Person, *, done: bool) -> Comment:
    with transaction.atomic():
        found = Comment.objects.filter(pk=comment_id).first()
        if found is None or found.parent_id is not None or found.is_draft:
            raise Refused("Only a published thread can be resolved, by its first comment.")
        proposal = decisions.locked(found.proposal_id)
        changed = Comment.objects.filter(pk=found.pk, resolved_at__isnull=done).update(
            resolved_at=timezone.now() if done else None, resolved_by=person if done else None
        )
        if not changed:
            raise Refused("The thread is resolved already." if done else "The thread is open already.")
        kind = DecisionKind.RESOLVED if done else DecisionKind.REOPENED
        decisions.append(proposal, kind, person, "", {"comment": found.pk})
    found.refresh_from_db()
    return found


def _text(text: str) -> str:
    kept = decisions.text_of(text)
    if not kept:
        raise Refused("A comment needs words.", "text")
    return kept


def _thread(proposal: Proposal, parent: int) -> Comment:
    thread = Comment.objects.filter(pk=parent, proposal=proposal, published_at__isnull=False).first()
    if thread is None:
        raise Refused("There is no such thread to reply to.", "parent")
    return thread.parent or thread


def _revision(proposal: Proposal, number: int | None) -> Revision:
    wanted = proposal.revision if number is None else number
    found = proposal.revisions.select_related("version").filter(number=wanted).first()
    if found is None:
        raise Refused(f"{proposal} has no revision {wanted}; the latest is {proposal.revision}.", "revision")
    return found


def _place(comment: Comment, lines: tuple[int, int], old: OldSide | None) -> None:
    """Put the comment on lines that are there."""
    first, last = lines
    if old is not None:
        if old.version is not None and old.version.run.problem_id != comment.proposal.problem_id:
            raise Refused(f"{old.key} is a version of another problem: nothing here is compared with it.", "base")
        comment.side, comment.base = Side.OLD, old.version
    count = len(comment.about.splitlines())
    if not 1 <= first <= last <= count:
        raise Refused(f"Lines go from 1 to {count}, the first before the last; {first} to {last} does not.", "lines")
    comment.first_line, comment.last_line = first, last


def _own_draft(comment_id: int, person: Person) -> Comment:
    found = Comment.objects.filter(pk=comment_id, by=person).first()
    if found is None:
        raise Refused("There is no such draft of yours.")
    if not found.is_draft:
        raise Refused("It is published, and what is published stays as it was written. Reply to it instead.")
    return found
