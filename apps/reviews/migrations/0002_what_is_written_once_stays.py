from django.db import migrations

TABLES = ("decision", "revision", "check")
SQLITE = """
CREATE TRIGGER reviews_{table}_{verb} BEFORE {VERB} ON reviews_{table}
BEGIN SELECT RAISE(ABORT, 'a {table} of a review is kept as it was written'); END
"""
FUNCTION = """
CREATE FUNCTION reviews_refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'a record of a review is kept as it was written'; END $$;
"""
POSTGRESQL = """
CREATE TRIGGER reviews_{table}_keep BEFORE UPDATE OR DELETE ON reviews_{table}
FOR EACH ROW EXECUTE FUNCTION reviews_refuse();
"""


def guard(apps, schema_editor):
    """The database itself refuses to change or remove what was decided."""
    vendor = schema_editor.connection.vendor
    if vendor == "postgresql":
        schema_editor.execute(FUNCTION)
    for table in TABLES:
        if vendor == "sqlite":
            for verb in ("update", "delete"):
                schema_editor.execute(SQLITE.format(table=table, verb=verb, VERB=verb.upper()))
        elif vendor == "postgresql":
            schema_editor.execute(POSTGRESQL.format(table=table))


def let_go(apps, schema_editor):
    vendor = schema_editor.connection.vendor
    if vendor == "sqlite":
        for table in TABLES:
            for verb in ("update", "delete"):
                schema_editor.execute(f"DROP TRIGGER IF EXISTS reviews_{table}_{verb}")
    elif vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION IF EXISTS reviews_refuse() CASCADE")


class Migration(migrations.Migration):
    dependencies = [("reviews", "0001_initial")]
    operations = [migrations.RunPython(guard, let_go)]
