"""manage.py restore FILE: a backup put back, with what was there kept."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.people import audit
from pragma_web.upkeep.restore import CannotRestore, restore


class Command(BaseCommand):
    """Puts a backup back."""

    help = "Put a backup in place of this installation's database. What is there is kept in var/copies."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django declares it so; the database may not be there yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which, and what may give way."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--yes", action="store_true", help="let what this installation holds give way")
        parser.add_argument("--with-key", action="store_true", help="take the backup's secret over, too")

    def handle(self, *args: Any, **options: Any) -> None:
        """Put it back."""
        with audit.coming_from("", "command line"):
            try:
                done = restore(options["file"], overwrite=options["yes"], with_key=options["with_key"])
            except CannotRestore as problem:
                raise CommandError(str(problem)) from None
        told = ", ".join(f"{count} {name}" for name, count in done.manifest.holds.items())
        self.stdout.write(f"Restored the backup of {done.manifest.made_at} (version {done.manifest.version}): {told}.")
        if done.kept:
            self.stdout.write(f"What was here before: {done.kept.path}")
        if done.other_key:
            self.stdout.write(
                "The backup was made under another secret: stored model keys can't be read and webhooks' signatures change. "
                "Set PRAGMA_KEY (or var/secret) to the one it was made under."
            )
