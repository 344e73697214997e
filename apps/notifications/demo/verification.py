"""Compares the notifications with the expected ones, and the delivery log with what mail server and gateway accepted.

It asks neither a relay nor a listener.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, column, select, table

from apps.notifications.database import DELIVERY_TABLES
from apps.notifications.demo.users import Expected
from apps.notifications.domain import Audience, Channel
from apps.notifications.requests import delivery_id
from apps.notifications.tables import NOTIFICATIONS, notification_delivery

SUBJECTS = {
    Audience.RESTAURANT: "reservation_id",
    Audience.CUSTOMER: "order_id",
    Audience.AGENCY: "account_id",
    Audience.ADMIN: "account_id",
}
"""The payload field that identifies the subject of a notification."""

STATUSES = table(f"{DELIVERY_TABLES.prefix}event", column("event_id"), column("status"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseState:
    """The state of the database at the end."""

    notifications: tuple[Expected, ...]
    ids: Mapping[str, Channel]
    """The channel of every expected delivery, by its id."""
    delivered: frozenset[str]
    statuses: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The failures found, and the totals."""

    failures: tuple[str, ...]
    notifications: int
    delivered: Counter[Channel]
    waiting: Counter[Channel]
    duplicates: int
    """Mails and requests that were sent more than once, which happens only after a crash."""

    @property
    def ok(self) -> bool:
        return not self.failures


def read(engine: Engine) -> DatabaseState:
    """Read the state in one transaction."""
    found_notifications: list[Expected] = []
    ids: dict[str, Channel] = {}
    with engine.begin() as connection:
        for audience, one in NOTIFICATIONS.items():
            for row in connection.execute(select(one)):
                channel = Channel(row.notification_type)
                found_notifications.append(Expected(audience, row.payload[SUBJECTS[audience]], row.user_id, channel))
                ids[delivery_id(audience, row.event_id, row.user_id, channel)] = channel
        delivered = frozenset(connection.scalars(select(notification_delivery.c.event_id)))
        statuses = {row.event_id: row.status for row in connection.execute(select(STATUSES))}
    return DatabaseState(notifications=tuple(found_notifications), ids=ids, delivered=delivered, statuses=statuses)


def verify(
    expected: Iterable[Expected], state: DatabaseState, *, mails: Counter[str], requests: Counter[str]
) -> Verification:
    """mails, requests: how often the servers accepted each delivery."""
    wanted, actual = Counter(expected), Counter(state.notifications)
    accepted = mails + requests
    outside = {event_id for event_id, channel in state.ids.items() if channel is not Channel.IN_APP}
    waiting = {event_id for event_id in state.ids if state.statuses.get(event_id) in ("PENDING", "PROCESSING")}
    findings: list[tuple[str, Sequence[object]]] = [
        ("a notification is missing", list((wanted - actual).elements())),
        ("a notification is duplicated or unexpected", list((actual - wanted).elements())),
        ("a delivery is dead", sorted(_dead(state))),
        (
            "a delivery is neither completed nor pending",
            sorted(state.ids.keys() - state.delivered - waiting - _dead(state)),
        ),
        ("a delivery is in the log, but no server accepted it", sorted((state.delivered & outside) - accepted.keys())),
        ("a server accepted an unexpected delivery", sorted(accepted.keys() - outside)),
    ]
    return Verification(
        failures=tuple(f"{what}: {len(found)}, such as {found[0]}" for what, found in findings if found),
        notifications=actual.total(),
        delivered=Counter(channel for event_id, channel in state.ids.items() if event_id in state.delivered),
        waiting=Counter(state.ids[event_id] for event_id in waiting - state.delivered),
        duplicates=accepted.total() - len(accepted),
    )


def _dead(state: DatabaseState) -> set[str]:
    return {event_id for event_id, status in state.statuses.items() if status == "FAILED"}
