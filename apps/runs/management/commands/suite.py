"""manage.py suite: many problems at once. Not part of this version; refused in so many words."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    """Refuses."""

    help = "Run a set of problems and tabulate what came of it (not part of this version)."

    def run_from_argv(self, argv: list[str]) -> None:
        """Options of the coming command are no usage error now."""
        super().run_from_argv(argv[:2])

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what to do instead."""
        raise CommandError(
            "Suites are not part of this version. Optimise one problem: python manage.py optimize PROBLEM.py",
            returncode=2,
        )
