"""The migrations of the package, and a schema that has a further one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pillarbox.stores.postgres
from pillarbox.plugins import StoreOptions
from pillarbox.statements import Names
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.schema import PostgresSchema
from pillarbox.stores.postgres.statements import PostgresStatements

MIGRATIONS = sorted((Path(pillarbox.stores.postgres.__file__).parent / "sql" / "migrations").glob("*.sql"))
NEXT = f"{len(MIGRATIONS) + 1:04}_next"
"""The name of the further migration."""

ADD_COLUMN = "-- A further column.\nALTER TABLE {request} ADD COLUMN urgency integer;\n"
ADD_INDEX = """-- A further index. (concurrently: each statement by itself, outside a transaction)
DROP INDEX CONCURRENTLY IF EXISTS {schema_name}."{prefix}audit_subject_idx";
CREATE INDEX CONCURRENTLY "{prefix}audit_subject_idx" ON {audit} (subject);
"""


@asynccontextmanager
async def next_release(
    url: str,
    folder: Path,
    script: str = ADD_COLUMN,
    *,
    statement_timeout: str = "10s",
    max_payload: int = StoreOptions.max_payload,
) -> AsyncIterator[PostgresSchema]:
    """The schema of a release that has `script` as a further migration, written to `folder`."""
    (folder / f"{NEXT}.sql").write_text(script, encoding="utf-8")
    statements = PostgresStatements(Names(schema="public"))
    connection = PostgresStoreConnection(url, statement_timeout=statement_timeout)
    try:
        yield PostgresSchema(connection, statements, max_payload=max_payload, migrations=statements.migrations(folder))
    finally:
        await connection.aclose()
