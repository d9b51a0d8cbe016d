from importlib import import_module

from django.db import migrations

from apps.people.kept_as_written import KeptAsWritten

# Its triggers make way for those that all rows written once have.
before = import_module("apps.reviews.migrations.0002_what_is_written_once_stays")


class Migration(migrations.Migration):
    dependencies = [("reviews", "0004_comments_on_both_sides")]
    operations = [
        migrations.RunPython(before.let_go, before.guard),
        KeptAsWritten("revision"),
        KeptAsWritten("decision"),
        KeptAsWritten("check"),
        KeptAsWritten("duel", with_others=True),  # goes with the run of either version
    ]
