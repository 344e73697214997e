"""The migrations on PostgreSQL, without a connection."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from pillarbox.core.store import MigrationScript
from pillarbox.stores.migrations import Migrations, Preamble
from pillarbox.stores.postgres.statements import PostgresStatements

CONCURRENTLY = "(concurrently:"
"""In the first line of a migration: `apply` runs its statements one by one, outside a transaction."""
_CONCURRENT_INDEX = re.compile(r"\bINDEX\s+CONCURRENTLY\b", re.IGNORECASE)


class PostgresMigrations(Migrations):
    """See `pillarbox.stores.migrations`."""

    def __init__(
        self,
        statements: PostgresStatements,
        *,
        max_payload: int,
        scripts: Mapping[int, tuple[str, str]] | None = None,
    ) -> None:
        """scripts: version → (name, SQL); by default those of the package."""
        self.payload_limit = statements.get("schema_limit", max_payload=str(int(max_payload)))
        preamble = Preamble(before=statements.get("schema_create_if_missing") + ";", after=self.payload_limit + ";")
        super().__init__(statements, scripts or statements.migrations(), statements.downgrades(), preamble=preamble)

    def is_concurrent(self, version: int) -> bool:
        """Whether `apply` runs the migration outside a transaction."""
        return CONCURRENTLY in self.first_line(version)

    def shell_script(self, *, since: int = 0) -> str:
        return _in_transaction(super().shell_script(since=since))

    def scripts(self, *, since: int = 0) -> list[MigrationScript]:
        return [
            replace(script, statements=tuple(_in_transaction(statement) for statement in script.statements))
            for script in super().scripts(since=since)
        ]


def _in_transaction(sql: str) -> str:
    """The statement as other tools run it: in a transaction, where PostgreSQL builds no index concurrently."""
    return _CONCURRENT_INDEX.sub("INDEX", sql)
