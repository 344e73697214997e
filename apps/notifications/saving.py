"""Saves all notifications of a message in one statement, in the table of their audience.

Invariant: a notification that already exists stays unchanged, is not an error, and does not affect the others.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, TextClause, bindparam, text
from sqlalchemy.exc import DataError

from apps.notifications.domain import Audience, Channel
from apps.notifications.message import NotificationMessage
from apps.notifications.orchestration.orchestrator import Notification
from apps.notifications.orchestration.wording import Wording
from apps.notifications.tables import NOTIFICATIONS, UtcTime
from pillarbox import PermanentError

STATEMENTS = Path(__file__).parent / "sql"
STORED_TIME = "%Y-%m-%d %H:%M:%S.%f"
"""The format of SQLAlchemy for times in SQLite, in UTC."""

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
    """Save notifications; returns the new ones. Raises PermanentError for text that the database cannot store."""
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
        "recipients": json.dumps([_row(notification) for notification in notifications]),
    }
    try:
        rows = connection.execute(_statement(connection.dialect.name, message.audience), parameters)
    except (DataError, UnicodeEncodeError) as error:  # NUL, half of a surrogate pair
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
