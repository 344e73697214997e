"""The state of deliveries: pending and dead ones from the outbox, completed ones from the delivery log.

The outbox deletes delivered events after a week; the log keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, Row, column, select, table

from apps.notifications.api.models import DeliveryState, DeliveryStatus, Notification
from apps.notifications.database import DELIVERY_TABLES
from apps.notifications.requests import delivery_id
from apps.notifications.tables import notification_delivery

EVENTS = table(
    f"{DELIVERY_TABLES.prefix}event",
    *map(column, ("event_id", "status", "retry_count", "last_error", "next_retry_at")),
)
"""The view of the outbox: see `outbox_event` in the schema reference."""

STATES: dict[str, DeliveryState] = {
    "PENDING": "waiting",
    "PROCESSING": "sending",
    "PUBLISHED": "delivered",
    "FAILED": "dead",
}


class DeliveryQueries:
    """Reads the state of deliveries."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def of(self, notifications: Sequence[Notification]) -> list[DeliveryStatus]:
        """One status for each, in order. All must be of one audience."""
        events = {_delivery_id(one): one for one in notifications}
        made = select(notification_delivery).where(
            notification_delivery.c.audience == notifications[0].audience,
            notification_delivery.c.notification_id.in_([one.id for one in notifications]),
        )
        with self._engine.begin() as connection:
            events_by_id = {
                row.event_id: row for row in connection.execute(select(EVENTS).where(EVENTS.c.event_id.in_(events)))
            }
            log = {row.notification_id: row for row in connection.execute(made)}
        return [_status(one, events_by_id.get(event_id), log.get(one.id)) for event_id, one in events.items()]


def _delivery_id(one: Notification) -> str:
    return delivery_id(one.audience, one.event_id, one.user_id, one.channel)


def _status(one: Notification, event: Row[Any] | None, delivery: Row[Any] | None) -> DeliveryStatus:
    """The log takes precedence: between sending and settling, the event is still pending in the outbox."""
    state: DeliveryState = "unknown" if event is None else STATES[event.status]
    return DeliveryStatus(
        channel=one.channel,
        notification_id=one.id,
        state=state if delivery is None else "delivered",
        failed_attempts=0 if event is None else event.retry_count,
        last_error=None if event is None else event.last_error,
        next_attempt_at=None if event is None or delivery is not None else _moment(event.next_retry_at),
        delivered_at=None if delivery is None else delivery.delivered_at,
    )


def _moment(value: datetime | str | None) -> datetime | None:
    """SQLite returns times as text, and MariaDB in UTC without saying so."""
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found
