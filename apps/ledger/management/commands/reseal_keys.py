"""manage.py reseal_keys: writes all kept keys anew under the present PRAGMA_KEY, so that the old one can be forgotten."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.ledger import catalogue
from apps.ledger.sealing import CannotSeal


class Command(BaseCommand):
    """Encrypts the keys of models anew."""

    help = "Encrypt all kept keys of models under the present PRAGMA_KEY (the old one stands in PRAGMA_OLD_KEYS)."

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, and say how many."""
        try:
            done, refused = catalogue.reseal()
        except CannotSeal as refusal:
            raise CommandError(refusal.message) from None
        self.stdout.write(f"{done} key(s) are encrypted under the present PRAGMA_KEY.")
        if refused:
            raise CommandError("\n".join(refused))
