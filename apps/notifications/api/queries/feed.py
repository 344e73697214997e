"""A user's live feed: the IN_APP rows of the delivery log in the order of their ids, with their notifications."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Engine, func, select, union_all

from apps.notifications.api.models import Notification
from apps.notifications.api.queries.notifications import as_notification, notifications_of
from apps.notifications.domain import Channel
from apps.notifications.tables import NOTIFICATIONS, notification_delivery

_live = notification_delivery.c


class Entry(NamedTuple):
    """A notification, and its position in the feed."""

    position: int
    notification: Notification


class FeedQueries:
    """Reads the feeds of followers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def ends(self, users: Collection[int]) -> dict[int, int]:
        """The last position of each of these feeds, in one statement. An empty feed is missing."""
        statement = (
            select(_live.user_id, func.max(_live.id).label("position"))
            .where(_live.user_id.in_(users), _live.channel == Channel.IN_APP)
            .group_by(_live.user_id)
        )
        with self._engine.begin() as connection:
            return {row.user_id: row.position for row in connection.execute(statement)}

    def after(self, user_id: int, position: int, *, most: int) -> list[Entry]:
        """The entries after a position, oldest first."""
        parts = [
            select(
                notifications_of(audience)
                .add_columns(_live.id.label("position"))
                .join(notification_delivery, _live.notification_id == table.c.id)
                .where(_live.audience == audience, _live.user_id == user_id, _live.channel == Channel.IN_APP)
                .where(_live.id > position)
                .order_by(_live.id)
                .limit(most)
                .subquery()
            )
            for audience, table in NOTIFICATIONS.items()
        ]
        merged = union_all(*parts).subquery()
        with self._engine.begin() as connection:
            rows = connection.execute(select(merged).order_by(merged.c.position).limit(most)).all()
        return [Entry(row.position, as_notification(row)) for row in rows]
