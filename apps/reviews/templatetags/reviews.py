"""What the frame of every page says of reviews."""

from __future__ import annotations

from typing import Any

from django import template

from apps.people.models import Person
from apps.reviews.presentation.queue import waiting_for

register = template.Library()


@register.simple_tag(takes_context=True)
def reviews_waiting(context: dict[str, Any]) -> int:
    """How many reviews wait for the viewer."""
    person = getattr(context.get("request"), "user", None)
    return waiting_for(person).count() if isinstance(person, Person) else 0
