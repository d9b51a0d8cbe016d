"""manage.py prune: old rows go; what people would look for stays unless it is named."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import fields
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.people import audit
from pragma_web.upkeep.prune import Retention, prune, shrink


class Command(BaseCommand):
    """Removes what is older than its retention."""

    help = "Remove old rows. Runs and what models were asked go only when named; the audit log never does."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """A number of days for each sort; 0 days is now, -1 keeps it for good."""
        for sort in fields(Retention):
            kept = f"{sort.default} days" if sort.default is not None else "for good"
            parser.add_argument(f"--{sort.name.replace('_', '-')}", type=int, metavar="DAYS", help=f"by default {kept}")
        parser.add_argument("--dry-run", action="store_true", help="only say what would go")
        parser.add_argument(
            "--vacuum", action="store_true", help="give the space back (SQLite; everything waits meanwhile)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Prune, and say what went."""
        given = {sort.name: options[sort.name] for sort in fields(Retention) if options[sort.name] is not None}
        if any(days < -1 for days in given.values()):
            raise CommandError("A retention is a number of days; -1 keeps for good.")
        retention = Retention(**{name: None if days == -1 else days for name, days in given.items()})
        with audit.coming_from("", "command line"):
            done = prune(retention, dry=options["dry_run"])
        word = "would go" if options["dry_run"] else "gone"
        for one in done:
            held = f" ({one.held} stay: something rests on them)" if one.held else ""
            self.stdout.write(f"{one.gone:8d} {one.what} {word}{held}")
        if options["vacuum"] and not options["dry_run"]:
            shrink()
