"""A database of the application, used with SQLAlchemy like the application does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import time
from typing import Any, Self

from sqlalchemy import Engine, column, event, insert, select, table, text

from apps.notifications.database import open_engine
from apps.notifications.domain import Audience, Channel
from apps.notifications.tables import (
    NOTIFICATIONS,
    audience_member,
    channel_preference,
    default_channel,
    quiet_hours,
    recipient,
)
from pillarbox import Event, Outbox

Notified = tuple[str, int, str]
"""Event, user, channel."""


class OpenDatabase:
    """A database of the application and its engine."""

    def __init__(self, url: str, engine: Engine) -> None:
        self.url = url
        self.engine = engine

    @classmethod
    @contextmanager
    def of(cls, url: str) -> Iterator[Self]:
        engine = open_engine(url)
        try:
            yield cls(url, engine)
        finally:
            engine.dispose()

    def rows(self, statement: Any) -> Sequence[Any]:
        with self.engine.connect() as connection:
            return connection.execute(statement).all()

    def number(self, statement: str) -> int:
        return int(self.rows(text(statement))[0][0])


class AppDatabase(OpenDatabase):
    """Adds users, records events and reads notifications."""

    # -- users ----------------------------------------------------------------------------------------------------

    def add_users(
        self,
        *user_ids: int,
        audience: Audience = Audience.RESTAURANT,
        aggregate_id: int = 5,
        time_zone: str = "UTC",
    ) -> None:
        """Add users of an aggregate; new ones get default details."""
        with self.engine.begin() as connection:
            known = set(connection.scalars(select(recipient.c.user_id)))
            new = [
                {"user_id": user_id, "name": f"User {user_id}", "time_zone": time_zone}
                for user_id in user_ids
                if user_id not in known
            ]
            if new:
                connection.execute(insert(recipient), new)
            connection.execute(
                insert(audience_member),
                [{"audience": audience, "aggregate_id": aggregate_id, "user_id": user_id} for user_id in user_ids],
            )

    def set_defaults(self, *channels: Channel, audience: Audience = Audience.RESTAURANT, event_type: str = "*") -> None:
        """Set the default channels of an audience."""
        rows = [{"audience": audience, "event_type": event_type, "channel": channel} for channel in channels]
        with self.engine.begin() as connection:
            connection.execute(insert(default_channel), rows)

    def set_preference(self, user_id: int, channel: Channel, enabled: bool, *, event_type: str = "*") -> None:
        row = {"user_id": user_id, "event_type": event_type, "channel": channel, "enabled": enabled}
        with self.engine.begin() as connection:
            connection.execute(insert(channel_preference), row)

    def set_quiet_hours(self, user_id: int, starts: time, ends: time) -> None:
        with self.engine.begin() as connection:
            connection.execute(insert(quiet_hours), {"user_id": user_id, "starts": starts, "ends": ends})

    # -- events ---------------------------------------------------------------------------------------------------

    def record(self, *events: Event) -> None:
        with self.engine.begin() as connection:
            Outbox().record(connection, *events)

    # -- results --------------------------------------------------------------------------------------------------

    def notifications(self, audience: Audience = Audience.RESTAURANT) -> list[Notified]:
        """All notifications of an audience, sorted, duplicates included."""
        table = NOTIFICATIONS[audience]
        rows = self.rows(select(table.c.event_id, table.c.user_id, table.c.notification_type))
        return sorted((row[0], row[1], row[2]) for row in rows)

    def delivery_requests(self) -> list[Notified]:
        """All requested deliveries, sorted, pending or not."""
        rows = self.rows(select(column("causation_id"), column("key")).select_from(table("delivery_event")))
        return sorted((cause, int(key.partition(":")[2]), key.partition(":")[0]) for cause, key in rows)

    def dead_letter_errors(self) -> list[str]:
        """The errors of the dead letters."""
        return [row[0] for row in self.rows(text("SELECT error FROM outbox_dead_letter"))]

    @contextmanager
    def recording_statements(self) -> Iterator[list[str]]:
        """The statements that the application's engine sends in the block."""
        sent: list[str] = []

        def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
            sent.append(statement)

        event.listen(self.engine, "before_cursor_execute", note)
        try:
            yield sent
        finally:
            event.remove(self.engine, "before_cursor_execute", note)


def reservation(event_id: str, *, aggregate_id: int = 5, **payload: object) -> Event:
    """An event for a restaurant."""
    return event_for(Audience.RESTAURANT, event_id, aggregate_id=aggregate_id, **payload)


def event_for(audience: Audience, event_id: str, *, aggregate_id: int = 5, **payload: object) -> Event:
    return Event(
        "RESERVATION_REQUESTED",
        payload,
        event_id=event_id,
        aggregate_type=audience,
        aggregate_id=str(aggregate_id),
    )


def combinations(event_ids: Iterable[str], user_ids: Iterable[int], channels: Iterable[str]) -> list[Notified]:
    """The product of events, users and channels, sorted."""
    users, names = list(user_ids), [str(channel) for channel in channels]
    return sorted((event_id, user_id, name) for event_id in event_ids for user_id in users for name in names)
