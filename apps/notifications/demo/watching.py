"""What is to be seen at the moment: every user and channel, how much they were told, and how much of it has arrived."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Engine, column, func, literal, select, table, union_all

from apps.notifications.database import DELIVERY_PREFIX
from apps.notifications.tables import NOTIFICATIONS, notification_delivery
from apps.notifications.words import Audience, Channel

EVENTS = table(f"{DELIVERY_PREFIX}event", column("aggregate_type"), column("key"), column("status"))


class Cell(NamedTuple):
    """One user on one channel."""

    audience: Audience
    user_id: int
    channel: Channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One look."""

    phase: str
    elapsed: float
    events: int
    told: Counter[Cell]
    """Notifications there are."""
    postponed: Counter[Cell]
    """… of which so many wait for the morning."""
    delivered: Counter[Cell]
    dead: Counter[Cell]
    mail_open: bool
    happenings: tuple[tuple[float, str], ...]

    @property
    def undelivered(self) -> int:
        """What could have arrived by now and has not."""
        done = self.postponed.total() + self.delivered.total() + self.dead.total()
        return self.told.total() - done

    def by_channel(self, cells: Counter[Cell]) -> Counter[Channel]:
        counted: Counter[Channel] = Counter()
        for cell, number in cells.items():
            counted[cell.channel] += number
        return counted


def look(engine: Engine) -> tuple[Counter[Cell], Counter[Cell], Counter[Cell], Counter[Cell]]:
    """Told, postponed, delivered, dead; one transaction."""
    notifications = union_all(
        *(
            select(
                literal(str(audience)).label("audience"), one.c.user_id, one.c.notification_type, one.c.deliver_after
            )
            for audience, one in NOTIFICATIONS.items()
        )
    ).subquery()
    by_cell = (notifications.c.audience, notifications.c.user_id, notifications.c.notification_type)
    told = select(*by_cell, func.count(), func.count(notifications.c.deliver_after)).group_by(*by_cell)
    log = (notification_delivery.c.audience, notification_delivery.c.user_id, notification_delivery.c.channel)
    made = select(*log, func.count()).group_by(*log)
    given_up = select(EVENTS.c.aggregate_type, EVENTS.c.key).where(EVENTS.c.status == "FAILED")
    with engine.begin() as connection:
        rows = [(_cell(*row[:3]), row[3], row[4]) for row in connection.execute(told)]
        delivered = Counter({_cell(*row[:3]): row[3] for row in connection.execute(made)})
        dead = Counter(_of_key(audience, key) for audience, key in connection.execute(given_up))
    return (
        Counter({cell: number for cell, number, _ in rows}),
        Counter({cell: late for cell, _, late in rows if late}),
        delivered,
        dead,
    )


def _cell(audience: str, user_id: int, channel: str) -> Cell:
    return Cell(Audience(audience), user_id, Channel(channel))


def _of_key(audience: str, key: str) -> Cell:
    """Deliveries are ordered by `<channel>:<user>`."""
    channel, _, user_id = key.partition(":")
    return _cell(audience, int(user_id), channel)
