"""A user's live feed: the log's rows of IN_APP deliveries, in the order of their ids, with what they tell."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Engine, func, select, union_all

from apps.notifications.api.models import Notification
from apps.notifications.api.queries.notifications import as_notification, notifications_of
from apps.notifications.tables import NOTIFICATIONS, notification_delivery
from apps.notifications.words import Channel

_live = notification_delivery.c


class Entry(NamedTuple):
    """A notification, and its place in the feed."""

    place: int
    notification: Notification


class FeedQueries:
    """What followers ask."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def ends(self, users: Collection[int]) -> dict[int, int]:
        """The last place of each of these feeds; one statement for all of them. An empty feed has none."""
        statement = (
            select(_live.user_id, func.max(_live.id).label("place"))
            .where(_live.user_id.in_(users), _live.channel == Channel.IN_APP)
            .group_by(_live.user_id)
        )
        with self._engine.begin() as connection:
            return {row.user_id: row.place for row in connection.execute(statement)}

    def after(self, user_id: int, place: int, *, most: int) -> list[Entry]:
        """What comes after a place, oldest first."""
        parts = [
            select(
                notifications_of(audience)
                .add_columns(_live.id.label("place"))
                .join(notification_delivery, _live.notification_id == table.c.id)
                .where(_live.audience == audience, _live.user_id == user_id, _live.channel == Channel.IN_APP)
                .where(_live.id > place)
                .order_by(_live.id)
                .limit(most)
                .subquery()
            )
            for audience, table in NOTIFICATIONS.items()
        ]
        merged = union_all(*parts).subquery()
        with self._engine.begin() as connection:
            rows = connection.execute(select(merged).order_by(merged.c.place).limit(most)).all()
        return [Entry(row.place, as_notification(row)) for row in rows]
