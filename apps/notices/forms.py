"""What is sent from the notifications page."""

from __future__ import annotations

from django.http import QueryDict

from apps.notices.choosing import Choices
from apps.notices.models import Kind, Way


def field_name(kind: Kind, way: Way) -> str:
    """The name of the box for one kind by one way."""
    return f"{kind.value}.{way.value}"


def choices_sent(posted: QueryDict) -> Choices:
    """Every box: there if it was ticked."""
    return {(kind, way): field_name(kind, way) in posted for kind in Kind for way in Way}
