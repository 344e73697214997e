"""The judgement: what the cast should have been told against what they were, and what arrived against the log.

Neither a relay nor a listener is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, column, select, table

from apps.notifications.database import DELIVERY_PREFIX
from apps.notifications.demo.cast import Told
from apps.notifications.requests import delivery_id
from apps.notifications.tables import NOTIFICATIONS, notification_delivery
from apps.notifications.words import Audience, Channel

SUBJECTS = {
    Audience.RESTAURANT: "reservation_id",
    Audience.CUSTOMER: "order_id",
    Audience.AGENCY: "account_id",
    Audience.ADMIN: "account_id",
}
"""The field of the payload that says what a notification is about."""

STATUSES = table(f"{DELIVERY_PREFIX}event", column("event_id"), column("status"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What the database says at the end."""

    notifications: tuple[Told, ...]
    ids: Mapping[str, Channel]
    """Every delivery there should be, by its id."""
    delivered: frozenset[str]
    statuses: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Everything that is not as it should be, and the figures beside it."""

    failures: tuple[str, ...]
    notifications: int
    delivered: Counter[Channel]
    waiting: Counter[Channel]
    repeats: int
    """Mails and requests that went out more than once: known by their id, and none without a crash."""

    @property
    def ok(self) -> bool:
        return not self.failures


def read(engine: Engine) -> Books:
    """One transaction."""
    told: list[Told] = []
    ids: dict[str, Channel] = {}
    with engine.begin() as connection:
        for audience, one in NOTIFICATIONS.items():
            for row in connection.execute(select(one)):
                channel = Channel(row.notification_type)
                told.append(Told(audience, row.payload[SUBJECTS[audience]], row.user_id, channel))
                ids[delivery_id(audience, row.event_id, row.user_id, channel)] = channel
        delivered = frozenset(connection.scalars(select(notification_delivery.c.event_id)))
        statuses = {row.event_id: row.status for row in connection.execute(select(STATUSES))}
    return Books(notifications=tuple(told), ids=ids, delivered=delivered, statuses=statuses)


def judge(expected: Iterable[Told], books: Books, *, mails: Counter[str], requests: Counter[str]) -> Verdict:
    """`mails` and `requests`: what the world outside took, by delivery."""
    due, there = Counter(expected), Counter(books.notifications)
    arrived = mails + requests
    outside = {event_id for event_id, channel in books.ids.items() if channel is not Channel.IN_APP}
    waiting = {event_id for event_id in books.ids if books.statuses.get(event_id) in ("PENDING", "PROCESSING")}
    findings: list[tuple[str, Sequence[object]]] = [
        ("a notification is missing", list((due - there).elements())),
        ("a notification is there too often, or should not be there", list((there - due).elements())),
        ("a delivery is dead", sorted(_dead(books))),
        ("a delivery is neither done nor waiting", sorted(books.ids.keys() - books.delivered - waiting - _dead(books))),
        ("a delivery is in the log and never arrived", sorted((books.delivered & outside) - arrived.keys())),
        ("a delivery arrived that nobody asked for", sorted(arrived.keys() - outside)),
    ]
    return Verdict(
        failures=tuple(f"{what}: {len(found)}, such as {found[0]}" for what, found in findings if found),
        notifications=there.total(),
        delivered=Counter(channel for event_id, channel in books.ids.items() if event_id in books.delivered),
        waiting=Counter(books.ids[event_id] for event_id in waiting - books.delivered),
        repeats=arrived.total() - len(arrived),
    )


def _dead(books: Books) -> set[str]:
    return {event_id for event_id, status in books.statuses.items() if status == "FAILED"}
