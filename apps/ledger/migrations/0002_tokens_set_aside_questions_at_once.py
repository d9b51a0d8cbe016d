"""Tokens are set aside as money is; what was settled before counts with what it took."""

from __future__ import annotations

from typing import Any

from django.db import migrations, models
from django.db.models import F
from django.db.models.functions import Coalesce


def count_what_was_taken(apps: Any, schema_editor: Any) -> None:
    taken = Coalesce(F("tokens_in"), 0) + Coalesce(F("tokens_out"), 0)
    apps.get_model("ledger", "Call").objects.update(counted_tokens=taken)


class Migration(migrations.Migration):
    dependencies = [("ledger", "0001_models_trials_limits_calls")]

    operations = [
        migrations.AddField("call", "counted_tokens", models.PositiveBigIntegerField(default=0)),
        migrations.AddField("call", "reserved_tokens", models.PositiveBigIntegerField(default=0)),
        migrations.AddField(
            "languagemodel",
            "at_once",
            models.PositiveSmallIntegerField(default=4, help_text="questions that one run may ask at the same time"),
        ),
        migrations.RunPython(count_what_was_taken, migrations.RunPython.noop),
    ]
