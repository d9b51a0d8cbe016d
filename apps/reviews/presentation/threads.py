"""Threads of comments, and where their lines are now: a comment follows its lines through later revisions."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.db.models import Q

from apps.people.models import Person
from apps.reviews.models import Comment, Proposal, Revision


@dataclass(frozen=True)
class Thread:
    """A comment with its replies. `first` and `last` are its lines in the revision shown; None where it has none there
    (`outdated` says that it was about lines which are gone since)."""

    root: Comment
    replies: tuple[Comment, ...]
    first: int | None
    last: int | None
    outdated: bool
    excerpt: str = ""

    @property
    def is_resolved(self) -> bool:
        """Whether it is done with."""
        return self.root.resolved_at is not None

    @property
    def where(self) -> str:
        """`line 18`, `lines 18–22`, or nothing for a comment on the whole."""
        first, last = self.root.first_line, self.root.last_line
        if first is None:
            return ""
        return f"line {first}" if first == last else f"lines {first}–{last}"


def threads_of(proposal: Proposal, shown: Revision, person: Person) -> list[Thread]:
    """Every thread that this person may see: what is published, and their own drafts."""
    visible = Q(published_at__isnull=False) | Q(by=person)
    comments = proposal.comments.filter(visible).select_related("by", "revision__version", "resolved_by")
    replies: dict[int, list[Comment]] = {}
    roots: list[Comment] = []
    for comment in comments:
        if comment.parent_id is None:
            roots.append(comment)
        else:
            replies.setdefault(comment.parent_id, []).append(comment)
    return [_thread(root, tuple(replies.get(root.pk, ())), shown) for root in roots]


def _thread(root: Comment, replies: tuple[Comment, ...], shown: Revision) -> Thread:
    if root.first_line is None or root.last_line is None:
        return Thread(root, replies, None, None, False)
    source = root.revision.version.source
    lines = carried(source, shown.version.source, root.first_line, root.last_line)
    if lines is None:
        return Thread(root, replies, None, None, True, _excerpt(source, root.first_line, root.last_line))
    return Thread(root, replies, *lines, False)


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
