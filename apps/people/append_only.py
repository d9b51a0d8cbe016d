"""Rows that are written once: neither a page nor the API, the admin or a shell changes or deletes them.

The database refuses too, for what does not come through here: the migration that makes the table has a
`KeptAsWritten` (`kept_as_written.py`), and a test looks whether each kind has.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from django.db import models


class NeverAltered(TypeError):
    """Somebody tried to change or delete what is kept as it was written."""


_Row = TypeVar("_Row", bound=models.Model)


def _unchanged(kind: type[models.Model]) -> NeverAltered:
    return NeverAltered(f"{kind._meta.verbose_name}: kept as it was written, never changed.")


def _undeleted(kind: type[models.Model]) -> NeverAltered:
    return NeverAltered(f"{kind._meta.verbose_name}: kept as it was written, never deleted.")


class AppendOnlyRows(models.QuerySet[_Row]):
    """Rows that can be read and added to."""

    def update(self, **_: Any) -> NoReturn:
        """Refused."""
        raise _unchanged(self.model)

    def delete(self) -> NoReturn:
        """Refused."""
        raise _undeleted(self.model)

    def bulk_update(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        raise _unchanged(self.model)


class AppendOnly(models.Model):
    """A row that is written once. Each kind names its own rows: `objects = Decisions.as_manager()`."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **options: Any) -> None:
        """Write it, once; never over another that has its key."""
        if not self._state.adding:
            raise _unchanged(type(self))
        super().save(*args, **{**options, "force_insert": True})

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        raise _undeleted(type(self))
