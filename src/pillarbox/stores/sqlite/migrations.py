"""The migrations on SQLite, without a connection."""

from __future__ import annotations

from collections.abc import Mapping

from pillarbox.stores.migrations import Migrations, Preamble
from pillarbox.stores.sqlite.statements import SqliteStatements


class SqliteMigrations(Migrations):
    """See `pillarbox.stores.migrations`."""

    def __init__(
        self,
        statements: SqliteStatements,
        *,
        max_payload: int,
        scripts: Mapping[int, tuple[str, str]] | None = None,
    ) -> None:
        """scripts: version → (name, SQL); by default those of the package."""
        self.payload_limit = statements.script("schema_limit", max_payload=str(int(max_payload)))
        super().__init__(
            statements,
            scripts or statements.migrations(),
            statements.downgrades(),
            preamble=Preamble(before=statements.script("schema_migrations"), after=self.payload_limit),
        )
