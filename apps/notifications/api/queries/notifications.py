"""A user's notifications, merged from the four tables.

Each table returns one page by its index, and the four pages are merged. The order is total: time, audience, id.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Engine, Row, Select, Table, and_, literal, select, tuple_, union_all, update

from apps.notifications.api.models import Notification
from apps.notifications.domain import Audience, Channel
from apps.notifications.tables import NOTIFICATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The last notification of a page."""

    created_at: datetime
    audience: Audience
    id: int


class NotificationQueries:
    """Reads and updates the notification tables."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def page(
        self, user_id: int, *, below: Position | None, unread: bool, channel: Channel | None, size: int
    ) -> list[Notification]:
        """The newest `size` notifications below a position."""
        pages = []
        for audience, table in NOTIFICATIONS.items():
            one = notifications_of(audience).where(table.c.user_id == user_id)
            if below is not None:
                one = one.where(_below(audience, table, below))
            if unread:
                one = one.where(table.c.read_at.is_(None))
            if channel is not None:
                one = one.where(table.c.notification_type == channel)
            newest = one.order_by(table.c.created_at.desc(), table.c.id.desc()).limit(size)
            pages.append(select(newest.subquery()))
        merged = union_all(*pages).subquery()
        statement = select(merged).order_by(*(merged.c[name].desc() for name in Position.__slots__)).limit(size)
        with self._engine.begin() as connection:
            return [as_notification(row) for row in connection.execute(statement)]

    def siblings(self, user_id: int, audience: Audience, notification_id: int) -> list[Notification]:
        """The notifications of the same event on all channels; [] if the notification does not belong to the user."""
        table = NOTIFICATIONS[audience]
        event_id = select(table.c.event_id).where(table.c.id == notification_id, table.c.user_id == user_id)
        statement = (
            notifications_of(audience)
            .where(table.c.user_id == user_id, table.c.event_id == event_id.scalar_subquery())
            .order_by(table.c.notification_type)
        )
        with self._engine.begin() as connection:
            return [as_notification(row) for row in connection.execute(statement)]

    def read(self, user_id: int, audience: Audience, notification_id: int) -> bool:
        """Mark one as read; idempotent. False if the user has no such notification."""
        table = NOTIFICATIONS[audience]
        own = and_(table.c.id == notification_id, table.c.user_id == user_id)
        with self._engine.begin() as connection:
            connection.execute(update(table).where(own, table.c.read_at.is_(None)).values(read_at=datetime.now(UTC)))
            return connection.scalar(select(table.c.id).where(own)) is not None

    def read_all(self, user_id: int) -> int:
        """Mark all as read; returns how many were unread."""
        now = datetime.now(UTC)
        with self._engine.begin() as connection:
            return sum(
                connection.execute(
                    update(table).where(table.c.user_id == user_id, table.c.read_at.is_(None)).values(read_at=now)
                ).rowcount
                for table in NOTIFICATIONS.values()
            )


def notifications_of(audience: Audience) -> Select[Any]:
    """The columns of a `Notification` from the table of an audience."""
    table = NOTIFICATIONS[audience]
    return select(
        literal(str(audience)).label("audience"),
        table.c.notification_type.label("channel"),
        *(table.c[name] for name in Notification.model_fields if name not in ("audience", "channel")),
    )


def as_notification(row: Row[Any]) -> Notification:
    """Convert a row of `notifications_of`; other columns are ignored."""
    return Notification(**{name: row._mapping[name] for name in Notification.model_fields})


def _below(audience: Audience, table: Table, position: Position) -> ColumnElement[bool]:
    """The rows of a table below `position`. All rows of a table have the same audience, so one comparison suffices."""
    if audience == position.audience:
        return tuple_(table.c.created_at, table.c.id) < tuple_(
            literal(position.created_at, table.c.created_at.type), literal(position.id)
        )
    if audience < position.audience:
        return table.c.created_at <= position.created_at
    return table.c.created_at < position.created_at
