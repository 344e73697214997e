"""INSERT statements for rows that may exist, on every database of the applications."""

from __future__ import annotations

from sqlalchemy import Insert, Table
from sqlalchemy.dialects import mysql, postgresql, sqlite


def insert_or_keep(dialect: str, table: Table) -> Insert:
    """An insert that leaves an existing row unchanged; other errors stay errors."""
    if dialect == "mariadb":
        first = next(iter(table.primary_key))
        # IGNORE would ignore invalid values, too.
        return mysql.insert(table).on_duplicate_key_update({first.name: first})
    return _insert(dialect, table).on_conflict_do_nothing()


def insert_or_update(dialect: str, table: Table) -> Insert:
    """An insert that updates the row with the same primary key."""
    others = [column.name for column in table.c if not column.primary_key]
    if dialect == "mariadb":
        statement = mysql.insert(table)
        return statement.on_duplicate_key_update({name: statement.inserted[name] for name in others})
    insert = _insert(dialect, table)
    changed = {name: insert.excluded[name] for name in others}
    return insert.on_conflict_do_update(index_elements=list(table.primary_key), set_=changed)


def _insert(dialect: str, table: Table) -> postgresql.Insert | sqlite.Insert:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
