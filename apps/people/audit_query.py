"""Which audit entries a page's address or an API request asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from django.db.models import Q, QuerySet
from django.utils.dateparse import parse_date

from apps.people.models import AuditEntry


@dataclass(frozen=True)
class AuditQuery:
    """Empty means all. `first` and `last` are days (UTC) like 2026-01-31; what is no day is passed over."""

    who: str = ""
    kind: str = ""
    text: str = ""
    first: str = ""
    last: str = ""
    page: str = "1"

    @classmethod
    def read(cls, given: Mapping[str, object]) -> AuditQuery:
        """From a query string."""
        names = ("who", "kind", "text", "first", "last")
        return cls(**{name: str(given.get(name, "")).strip()[:200] for name in names}, page=str(given.get("page", "1")))

    def apply(self, entries: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        """Those asked for. A `kind` without a dot stands for its whole area."""
        if self.who:
            entries = entries.filter(who=self.who)
        if self.kind:
            entries = entries.filter(Q(kind=self.kind) | Q(kind__startswith=f"{self.kind}."))
        if self.text:
            words = Q(about__icontains=self.text) | Q(detail__icontains=self.text) | Q(address__startswith=self.text)
            entries = entries.filter(words | Q(through__icontains=self.text))
        if first := _midnight(self.first):
            entries = entries.filter(at__gte=first)
        if last := _midnight(self.last):
            entries = entries.filter(at__lt=last + timedelta(days=1))
        return entries


def _midnight(day: str) -> datetime | None:
    try:
        parsed = parse_date(day)
    except ValueError:
        return None
    return datetime.combine(parsed, time(), UTC) if parsed else None
