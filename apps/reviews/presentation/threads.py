"""Threads of comments, and where their lines are now: a comment follows its lines through later revisions."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlencode

from django.db.models import Q

from apps.people.models import Person
from apps.reviews.comments import OldSide
from apps.reviews.models import Comment, Proposal, Revision, Side


@dataclass(frozen=True)
class Place:
    """Lines of one of the two texts that are shown."""

    side: Side
    first: int
    last: int


@dataclass(frozen=True)
class Thread:
    """A comment with its replies, and where it stands in the texts shown: nowhere where it is about the whole, or about
    lines that neither of them has (`excerpt` is what those were)."""

    root: Comment
    replies: tuple[Comment, ...]
    place: Place | None = None
    excerpt: str = ""

    @property
    def is_resolved(self) -> bool:
        """Whether it is done with."""
        return self.root.resolved_at is not None

    @property
    def where(self) -> str:
        """`line 18`, `lines 18–22 of run 3 v1`, or nothing for a comment on the whole."""
        first, last = self.root.first_line, self.root.last_line
        if first is None:
            return ""
        lines = f"line {first}" if first == last else f"lines {first}–{last}"
        return f"{lines} of {OldSide(self.root.base).name}" if self.root.is_on_old_side else lines

    @property
    def address(self) -> str:
        """The query and fragment that show it where it was written."""
        query = {"rev": str(self.root.revision.number)}
        if self.root.is_on_old_side:
            query |= {"view": "split", "base": OldSide(self.root.base).key}
        return f"?{urlencode(query)}#c{self.root.pk}"


def threads_of(proposal: Proposal, shown: Revision, person: Person, base: str | None = None) -> list[Thread]:
    """Every thread that this person may see: what is published, and their own drafts.

    `base` is the text that the revision is shown against, None where it is shown by itself.
    """
    visible = Q(published_at__isnull=False) | Q(by=person)
    related = ("by", "revision__version", "resolved_by", "base", "proposal__problem")
    comments = proposal.comments.filter(visible).select_related(*related)
    replies: dict[int, list[Comment]] = {}
    roots: list[Comment] = []
    for comment in comments:
        if comment.parent_id is None:
            roots.append(comment)
        else:
            replies.setdefault(comment.parent_id, []).append(comment)
    texts = {Side.NEW: shown.version.source} | ({} if base is None else {Side.OLD: base})
    return [_thread(root, tuple(replies.get(root.pk, ())), texts) for root in roots]


def _thread(root: Comment, replies: tuple[Comment, ...], texts: dict[Side, str]) -> Thread:
    if root.first_line is None or root.last_line is None:
        return Thread(root, replies)
    # Its own side first; lines that a new version took away are on the old side of what they are compared with now.
    for side in sorted(texts, key=lambda one: one != root.side):
        lines = carried(root.about, texts[side], root.first_line, root.last_line)
        if lines is not None:
            return Thread(root, replies, Place(side, *lines))
    return Thread(root, replies, None, _excerpt(root.about, root.first_line, root.last_line))


def carried(old: str, new: str, first: int, last: int) -> tuple[int, int] | None:
    """Where lines `first` to `last` of the old text are in the new one, or None where any of them has changed."""
    if old == new:
        return first, last
    for a, b, size in _matching(old, new):
        if a <= first - 1 and last <= a + size:
            return first - a + b, last - a + b
    return None


@lru_cache(maxsize=64)
def _matching(old: str, new: str) -> Sequence[tuple[int, int, int]]:
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    return [(block.a, block.b, block.size) for block in matcher.get_matching_blocks()]


def _excerpt(source: str, first: int, last: int) -> str:
    return "\n".join(source.splitlines()[first - 1 : min(last, first + 7)])
