"""What the suites ask the tables, in the transaction of the test."""

from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections

from pillarbox.integrations.django.configuration import table_settings


def rows(
    columns: str, table: str = "message", *, order: str = "id", using: str = DEFAULT_DB_ALIAS
) -> list[tuple[Any, ...]]:
    """Columns of a table."""
    connection, names = connections[using], table_settings(using).store.tables
    quote = connection.ops.quote_name
    schema = f"{quote(names.schema)}." if connection.vendor == "postgresql" else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {schema}{quote(names.prefix + table)} ORDER BY {order}")
        return [tuple(row) for row in cursor.fetchall()]


def recorded(using: str = DEFAULT_DB_ALIAS) -> list[str]:
    """The ids of the pending events that this connection sees."""
    return [event_id for (event_id,) in rows("event_id", using=using)]
