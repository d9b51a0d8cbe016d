"""The bell in the bar on top."""

from __future__ import annotations

from typing import Any

from django import template

from apps.notices.telling import unread
from apps.people.models import Person

register = template.Library()


@register.inclusion_tag("notices/bell.html", takes_context=True)
def bell(context: dict[str, Any]) -> dict[str, Any]:
    """How many notices the viewer has not read; a script keeps the number up to date."""
    person = getattr(context.get("request"), "user", None)
    count, newest = unread([person.pk])[person.pk] if isinstance(person, Person) else (0, 0)
    return {"count": count, "newest": newest}
