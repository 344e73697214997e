"""Requests deliveries like a listener, and reads their results."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count

from sqlalchemy import insert, select, text

from apps.notifications.domain import Audience, Channel, RecipientType
from apps.notifications.message import NotificationMessage
from apps.notifications.orchestration.orchestrator import Notification
from apps.notifications.orchestration.wording import Wording
from apps.notifications.requests import delivery_of, outbox
from apps.notifications.tables import NOTIFICATIONS, notification_delivery, recipient
from tests.apps.notifications.app_database import OpenDatabase

_numbers = count(1)


class Deliveries(OpenDatabase):
    """The deliveries in a database of the application."""

    def add_users(self, *user_ids: int, **details: str | None) -> None:
        """Add users with an address for every channel, unless the details say otherwise."""
        rows = [
            {
                "user_id": user_id,
                "name": f"User {user_id}",
                "email": f"user{user_id}@example.org",
                "phone": f"+39 {user_id}",
                "push_token": f"token-{user_id}",
                "time_zone": "UTC",
            }
            | details
            for user_id in user_ids
        ]
        with self.engine.begin() as connection:
            connection.execute(insert(recipient), rows)

    def request(
        self,
        user_id: int,
        *channels: Channel,
        title: str = "Order received",
        body: str = "We have received your order.",
        audience: Audience = Audience.CUSTOMER,
        event_id: str | None = None,
        created_at: datetime | None = None,
        deliver_after: datetime | None = None,
    ) -> list[str]:
        """Save the notifications of one event and request their deliveries; returns the delivery ids."""
        message = NotificationMessage(
            event_id=event_id or f"event-{next(_numbers)}",
            event_type="ORDER_CREATED",
            audience=audience,
            aggregate_id=1,
            recipient_type=RecipientType.SINGLE,
            payload={"user_id": user_id},
        )
        table = NOTIFICATIONS[audience]
        requests = []
        with self.engine.begin() as connection:
            for channel in channels:
                row = {
                    "event_id": message.event_id,
                    "user_id": user_id,
                    "notification_type": channel,
                    "event_type": message.event_type,
                    "aggregate_id": message.aggregate_id,
                    "title": title,
                    "body": body,
                    "payload": message.payload,
                    "deliver_after": deliver_after,
                    "created_at": created_at or datetime.now(UTC),
                }
                number = connection.execute(insert(table).values(row).returning(table.c.id)).scalar_one()
                notification = Notification(user_id=user_id, channel=channel, deliver_after=deliver_after)
                requests.append(delivery_of(message, Wording(title, body), notification, notification_id=number))
            return outbox.record(connection, *requests)

    def delivered(self) -> set[tuple[int, str]]:
        """Users and channels in the log; fails if a delivery is there twice."""
        rows = self.rows(select(notification_delivery))
        assert len({row.event_id for row in rows}) == len(rows)
        return {(row.user_id, row.channel) for row in rows}

    def states(self) -> dict[str, str]:
        """Every delivery in the outbox: id → PENDING, PUBLISHED, FAILED."""
        return {row.event_id: row.status for row in self.rows(text("SELECT event_id, status FROM delivery_event"))}

    def errors(self) -> dict[str, str | None]:
        return {row.event_id: row.last_error for row in self.rows(text("SELECT * FROM delivery_event"))}
