"""Who did what to what, from where. `record` is called by the service function that does it, in its transaction.

From where is not passed along: whoever takes a request in says so once (`coming_from`), and it holds until that is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from apps.people.models import AuditEntry, Person

_LONGEST = 200


@dataclass(frozen=True)
class Origin:
    """Where a request comes from: its network address, and the way it came by."""

    address: str = ""
    through: str = "server"


_NOWHERE = Origin()
_origin: ContextVar[Origin] = ContextVar("audit_origin", default=_NOWHERE)


@contextmanager
def coming_from(address: str, through: str) -> Iterator[None]:
    """What is recorded within the block came from there."""
    before = _origin.set(Origin(address[:45], through[:100]))
    try:
        yield
    finally:
        _origin.reset(before)


def came_through(through: str) -> None:
    """Say more exactly by which way the request under way came: an API token was found in it."""
    _origin.set(Origin(_origin.get().address, through[:100]))


def origin() -> Origin:
    """Where the request under way comes from."""
    return _origin.get()


def record(
    kind: str, by: Person | None, about: object = "", *, detail: str = "", link: str = "", who: str = ""
) -> AuditEntry:
    """Append an entry. `kind` is area.deed (`host.drained`); `about` is said in words, and linked where it has a page.

    `who` names whoever did it where that is nobody the team knows.
    """
    if not link and hasattr(about, "get_absolute_url"):
        link = about.get_absolute_url()
    name = by.username if by is not None else who or _origin.get().through
    return AuditEntry.objects.create(
        person=by,
        who=name[:150],
        kind=kind,
        about=str(about)[:_LONGEST],
        link=link[:_LONGEST],
        detail=detail,
        address=_origin.get().address,
        through=_origin.get().through,
    )
