"""Which notices a person wants by which way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db import transaction

from apps.notices.models import Choice, Kind, Way
from apps.people.models import Person

# In the page everything; by e-mail what waits for the person; to a webhook, which somebody set up on purpose, everything.
_MAILED = frozenset({Kind.REVIEW_ASKED, Kind.DECISION, Kind.RUN_FAILED})

Choices = Mapping[tuple[Kind, Way], bool]


def default(kind: Kind, way: Way) -> bool:
    """What holds for whoever has not chosen."""
    return kind in _MAILED if way is Way.EMAIL else True


def choices_of(people: Iterable[Person]) -> dict[int, dict[tuple[Kind, Way], bool]]:
    """Every choice of each person, by their id, in one query."""
    ids = [person.pk for person in people]
    found = {pk: {(kind, way): default(kind, way) for kind in Kind for way in Way} for pk in ids}
    for row in Choice.objects.filter(person__in=ids, kind__in=Kind.values):
        found[row.person_id][Kind(row.kind), Way(row.way)] = row.wanted
    return found


def choose(person: Person, wanted: Choices) -> None:
    """Keep the choices given; others stay."""
    with transaction.atomic():
        for (kind, way), yes in wanted.items():
            Choice.objects.update_or_create(person=person, kind=kind, way=way, defaults={"wanted": yes})
