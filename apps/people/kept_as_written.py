"""What a migration does so that the database itself holds a table of rows that are written once.

On SQLite a later migration that alters such a table makes it anew, without its triggers, and needs the operation again.
"""

from __future__ import annotations

from typing import Any

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation

_SQLITE = """
CREATE TRIGGER {table}_kept_from_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} is kept as it was written'); END
"""
_FUNCTION = """
CREATE FUNCTION {table}_kept() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '{table} is kept as it was written'; END $$
"""
_POSTGRESQL = """
CREATE TRIGGER {table}_kept BEFORE {verbs} ON {table} FOR EACH ROW EXECUTE FUNCTION {table}_kept()
"""
_VERBS = ("update", "delete")


class KeptAsWritten(Operation):
    """Triggers that refuse to change the rows of a model's table, and to delete them.

    `with_others`: rows that go when what they belong to goes; only changing them is refused.
    """

    def __init__(self, model: str, *, with_others: bool = False) -> None:
        self.model = model
        self.with_others = with_others

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: no model is other than it was."""

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        """Make the triggers (SQLite, PostgreSQL)."""
        table = self._table(app_label, to_state)
        verbs = _VERBS[:1] if self.with_others else _VERBS
        if schema_editor.connection.vendor == "sqlite":
            for verb in verbs:
                schema_editor.execute(_SQLITE.format(table=table, verb=verb))
        elif schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(_FUNCTION.format(table=table))
            schema_editor.execute(_POSTGRESQL.format(table=table, verbs=" OR ".join(verbs)))

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: Any, to_state: Any
    ) -> None:
        """Take them away."""
        table = self._table(app_label, from_state)
        if schema_editor.connection.vendor == "sqlite":
            for verb in _VERBS:
                schema_editor.execute(f"DROP TRIGGER IF EXISTS {table}_kept_from_{verb}")
        elif schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {table}_kept() CASCADE")

    def describe(self) -> str:
        """For `migrate --plan`."""
        return f"The database keeps rows of {self.model} as they were written"

    def _table(self, app_label: str, state: Any) -> str:
        return str(state.apps.get_model(app_label, self.model)._meta.db_table)
