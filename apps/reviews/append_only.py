"""Rows that are written once: neither a page nor the API, the admin or a shell changes or deletes them.

The database refuses too (triggers in the migration that makes the tables), for what does not come through here.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from django.db import models


class NeverAltered(Exception):
    """Somebody tried to change or delete what is kept as it was written."""


_Row = TypeVar("_Row", bound=models.Model)


class AppendOnlyRows(models.QuerySet[_Row]):
    """Rows that can be read and added to."""

    def update(self, **_: Any) -> NoReturn:
        """Refused."""
        raise NeverAltered(f"A {self.model._meta.verbose_name} is kept as it was written.")

    def delete(self) -> NoReturn:
        """Refused."""
        raise NeverAltered(f"A {self.model._meta.verbose_name} is never deleted.")

    def bulk_update(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        raise NeverAltered(f"A {self.model._meta.verbose_name} is kept as it was written.")


class AppendOnly(models.Model):
    """A row that is written once. Each kind names its own rows: `objects = Decisions.as_manager()`."""

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write it, once."""
        if not self._state.adding:
            raise NeverAltered(f"A {self._meta.verbose_name} is kept as it was written.")
        super().save(*args, **kwargs)

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        """Refused."""
        raise NeverAltered(f"A {self._meta.verbose_name} is never deleted.")
