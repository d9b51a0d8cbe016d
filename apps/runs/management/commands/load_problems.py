"""manage.py load_problems [FOLDER]: takes in the problems PRAGMA comes with. Doing it again changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.runs import starters
from apps.runs.refusals import ProblemRefused


class Command(BaseCommand):
    """Loads the starter problems."""

    help = "Take in the problems PRAGMA comes with; doing it again changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        """The folder, if it is another one."""
        parser.add_argument("folder", nargs="?", type=Path, default=settings.BASE / "problems")

    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        """Load and say how many."""
        if not folder.is_dir():
            raise CommandError(f"There is no folder {folder}.", returncode=2)
        try:
            loaded = starters.load(folder)
        except ProblemRefused as refusal:
            raise CommandError(f"A problem in {folder} is refused: {refusal.message}", returncode=2) from None
        self.stdout.write(f"{len(loaded)} problems are in the list.")
