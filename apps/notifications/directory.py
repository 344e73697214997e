"""The directory of users: their addresses and audiences."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Engine, Insert, Table
from sqlalchemy.dialects import postgresql, sqlite

from apps.notifications.domain import EVERY_EVENT, Audience, Channel
from apps.notifications.tables import audience_member, channel_preference, recipient


def add(
    engine: Engine,
    *,
    user_id: int,
    name: str,
    audience: Audience,
    aggregate_id: int,
    channels: Sequence[Channel],
    **addresses: str | None,
) -> None:
    """Add a user to the audience of an aggregate, or update an existing user, in one transaction.

    channels: those that the user wants; all others are disabled.
    addresses: `email`, `phone`, `push_token`, `time_zone`.
    """
    user = {"user_id": user_id, "name": name, **addresses}
    member = {"audience": audience, "aggregate_id": aggregate_id, "user_id": user_id}
    chosen = [
        {"user_id": user_id, "event_type": EVERY_EVENT, "channel": channel, "enabled": channel in channels}
        for channel in Channel
    ]
    with engine.begin() as connection:
        dialect = connection.dialect.name
        connection.execute(_upsert(dialect, recipient), user)
        connection.execute(_insert(dialect, audience_member).on_conflict_do_nothing(), member)
        connection.execute(_upsert(dialect, channel_preference), chosen)


def _upsert(dialect: str, table: Table) -> Insert:
    statement = _insert(dialect, table)
    changed = {column.name: statement.excluded[column.name] for column in table.c if not column.primary_key}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=changed)


def _insert(dialect: str, table: Table) -> postgresql.Insert | sqlite.Insert:
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
