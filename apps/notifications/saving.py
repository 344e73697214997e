"""Notifications into the table of their audience, all of one message in one statement.

What must stay true: one that exists already is done, not an error; it is not touched, and the others are saved.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, TextClause, bindparam, text
from sqlalchemy.exc import DataError

from apps.notifications.message import NotificationMessage
from apps.notifications.orchestration.orchestrator import Notification
from apps.notifications.orchestration.wording import Wording
from apps.notifications.tables import NOTIFICATIONS, UtcTime
from apps.notifications.words import Audience, Channel
from pillarbox import PermanentError

STATEMENTS = Path(__file__).parent / "sql"
STORED_TIME = "%Y-%m-%d %H:%M:%S.%f"
"""UTC, as SQLAlchemy writes times into SQLite."""

Saved = dict[tuple[int, Channel], int]
"""User and channel → id of the notification."""


def save(
    connection: Connection,
    message: NotificationMessage,
    wording: Wording,
    notifications: Sequence[Notification],
    *,
    now: datetime,
) -> Saved:
    """Save them; returns those that are new. Raises PermanentError for text that the database can never take."""
    if not notifications:
        return {}
    parameters = {
        "event_id": message.event_id,
        "event_type": message.event_type,
        "aggregate_id": message.aggregate_id,
        "title": wording.title,
        "body": wording.body,
        "payload": json.dumps(message.payload),
        "created_at": now,
        "told": json.dumps([_row(notification) for notification in notifications]),
    }
    try:
        rows = connection.execute(_statement(connection.dialect.name, message.audience), parameters)
    except (DataError, UnicodeEncodeError) as error:  # a NUL, half a character
        raise PermanentError(f"the payload of event {message.event_id} cannot be stored: {error}") from error
    return {(user_id, Channel(channel)): number for number, user_id, channel in rows}


def _row(notification: Notification) -> dict[str, object]:
    after = notification.deliver_after
    return {
        "user_id": notification.user_id,
        "channel": notification.channel,
        "deliver_after": None if after is None else after.astimezone(UTC).strftime(STORED_TIME),
    }


@cache
def _statement(dialect: str, audience: Audience) -> TextClause:
    sql = (STATEMENTS / dialect / "save_notifications.sql").read_text()
    return text(sql.format(table=NOTIFICATIONS[audience].name)).bindparams(bindparam("created_at", type_=UtcTime))
