"""manage.py backup: the whole installation in one file, while it runs."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.people import audit
from pragma_web.upkeep.backup import CannotBackUp, back_up


class Command(BaseCommand):
    """Makes a backup; the path of the new file is all it says on stdout."""

    help = "Back the installation up into one file, while it runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Where to, and what of it."""
        parser.add_argument("--to", type=Path, help="folder; by default var/backups")
        parser.add_argument("--keep", type=int, help="keep only the newest so many there")
        parser.add_argument(
            "--with-key", action="store_true", help="put the installation's secret in, too: guard the file"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make it."""
        if options["keep"] is not None and options["keep"] < 1:
            raise CommandError("--keep is the number of backups that stay, at least 1.")
        folder = options["to"] or settings.VAR / "backups"
        with audit.coming_from("", "command line"):
            try:
                made = back_up(folder, keep=options["keep"], with_key=options["with_key"])
            except CannotBackUp as problem:
                raise CommandError(str(problem)) from None
            audit.record("installation.backed_up", None, made.path.name)
        self.stdout.write(str(made.path))
        told = ", ".join(f"{count} {name}" for name, count in made.manifest.holds.items())
        self.stderr.write(f"{made.bytes / 1e6:.1f} MB: {told}. Older ones removed: {len(made.removed)}.")
        if not options["with_key"]:
            self.stderr.write("The installation's secret (var/secret or PRAGMA_KEY) is not in it: keep it elsewhere.")
