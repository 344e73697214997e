"""The number of saved, postponed, delivered and dead notifications, per user and channel."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Engine, column, func, literal, select, table, union_all

from apps.notifications.database import DELIVERY_TABLES
from apps.notifications.domain import Audience, Channel
from apps.notifications.tables import NOTIFICATIONS, notification_delivery

EVENTS = table(f"{DELIVERY_TABLES.prefix}event", column("aggregate_type"), column("key"), column("status"))


class Cell(NamedTuple):
    """One user on one channel."""

    audience: Audience
    user_id: int
    channel: Channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The state of the demo at one moment."""

    phase: str
    elapsed: float
    events: int
    saved: Counter[Cell]
    """All notifications."""
    postponed: Counter[Cell]
    """Those that wait for the end of quiet hours."""
    delivered: Counter[Cell]
    dead: Counter[Cell]
    mail_open: bool
    log: tuple[tuple[float, str], ...]

    @property
    def undelivered(self) -> int:
        """Notifications that are due and not yet delivered."""
        done = self.postponed.total() + self.delivered.total() + self.dead.total()
        return self.saved.total() - done

    def by_channel(self, cells: Counter[Cell]) -> Counter[Channel]:
        counted: Counter[Channel] = Counter()
        for cell, number in cells.items():
            counted[cell.channel] += number
        return counted


def read_progress(engine: Engine) -> tuple[Counter[Cell], Counter[Cell], Counter[Cell], Counter[Cell]]:
    """Read saved, postponed, delivered and dead notifications in one transaction."""
    notifications = union_all(
        *(
            select(
                literal(str(audience)).label("audience"), one.c.user_id, one.c.notification_type, one.c.deliver_after
            )
            for audience, one in NOTIFICATIONS.items()
        )
    ).subquery()
    by_cell = (notifications.c.audience, notifications.c.user_id, notifications.c.notification_type)
    counted = select(*by_cell, func.count(), func.count(notifications.c.deliver_after)).group_by(*by_cell)
    log = (notification_delivery.c.audience, notification_delivery.c.user_id, notification_delivery.c.channel)
    made = select(*log, func.count()).group_by(*log)
    dead_letters = select(EVENTS.c.aggregate_type, EVENTS.c.key).where(EVENTS.c.status == "FAILED")
    with engine.begin() as connection:
        rows = [(_cell(*row[:3]), row[3], row[4]) for row in connection.execute(counted)]
        delivered = Counter({_cell(*row[:3]): row[3] for row in connection.execute(made)})
        dead = Counter(_of_key(audience, key) for audience, key in connection.execute(dead_letters))
    return (
        Counter({cell: number for cell, number, _ in rows}),
        Counter({cell: late for cell, _, late in rows if late}),
        delivered,
        dead,
    )


def _cell(audience: str, user_id: int, channel: str) -> Cell:
    return Cell(Audience(audience), user_id, Channel(channel))


def _of_key(audience: str, key: str) -> Cell:
    """The ordering key of a delivery is `<channel>:<user>`."""
    channel, _, user_id = key.partition(":")
    return _cell(audience, int(user_id), channel)
