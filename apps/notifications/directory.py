"""The directory of users: their addresses and audiences."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Engine

from apps.notifications.domain import EVERY_EVENT, Audience, Channel
from apps.notifications.tables import audience_member, channel_preference, recipient
from apps.runtime.inserts import insert_or_keep, insert_or_update


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
        connection.execute(insert_or_update(dialect, recipient), user)
        connection.execute(insert_or_keep(dialect, audience_member), member)
        connection.execute(insert_or_update(dialect, channel_preference), chosen)
