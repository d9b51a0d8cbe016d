"""What people write on runs so as to find them again: tags, notes, and saved lists. None of it changes what a run does."""

from __future__ import annotations

import re

from django.http import QueryDict

from apps.people.models import Person
from apps.runs.models import Run, SavedView
from apps.runs.refusals import Refused

NOTES_LIMIT = 10_000  # characters
TAGS_LIMIT = 20
VIEWS_LIMIT = 50
_TAG = re.compile(r"[\w.+-]{1,30}")
_PASSING = ("page", "csrfmiddlewaretoken", "name")  # words of an address that are no part of a list


def tags_of(run: Run) -> list[str]:
    """The run's tags in order."""
    return run.tags.split()


def annotate(run: Run, *, tags: str, notes: str) -> None:
    """Write tags (words with blanks or commas between them) and notes on a run. Raises `Refused`; then neither changed."""
    words = list(dict.fromkeys(tags.lower().replace(",", " ").split()))
    wrong = next((word for word in words if not _TAG.fullmatch(word)), None)
    if wrong is not None:
        raise Refused(
            f"“{wrong[:40]}” is no tag: a tag is one word of at most 30 letters, digits, dots, plus or minus signs.",
            "tags",
        )
    if len(words) > TAGS_LIMIT or sum(map(len, words)) + len(words) + 1 > 300:
        raise Refused(f"A run has at most {TAGS_LIMIT} tags, and 300 characters of them in all.", "tags")
    if len(notes) > NOTES_LIMIT:
        raise Refused(f"Notes have at most {NOTES_LIMIT} characters; these have {len(notes)}.", "notes")
    run.tags = f" {' '.join(words)} " if words else ""
    run.notes = notes.replace("\x00", "").strip()
    run.save(update_fields=["tags", "notes"])


def save_view(person: Person, name: str, query: str) -> SavedView:
    """Keep a list's address under a name; the same name again is the list as it is now. Raises `Refused`."""
    name = " ".join(name.split())
    if not name or len(name) > 60:
        raise Refused("A saved view needs a name of at most 60 characters.", "name")
    words = QueryDict(query, mutable=True)
    for passing in _PASSING:
        words.pop(passing, None)
    text = words.urlencode()
    if len(text) > 1000:
        raise Refused("This list's address is too long to be kept. Take some filters away.", "query")
    known = SavedView.objects.filter(owner=person)
    if not known.filter(name=name).exists() and known.count() >= VIEWS_LIMIT:
        raise Refused(f"You have {VIEWS_LIMIT} saved views. Delete one first.", "name")
    return SavedView.objects.update_or_create(owner=person, name=name, defaults={"query": text})[0]


def forget_view(person: Person, number: int) -> bool:
    """Delete one of the person's own saved views; whether there was one."""
    return bool(SavedView.objects.filter(owner=person, pk=number).delete()[0])
