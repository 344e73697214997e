"""The delivery log: one row per delivered notification, written after sending and checked before sending again.

For IN_APP the row is the delivery itself. If a process crashes between sending and writing the row, the relay sends
again with the same id; if it crashes between writing the row and settling, the relay does not.

Invariant: the ids of one user's rows rise in the order of their commits; otherwise a follower of the live feed could
miss a row. `write` therefore locks the user before it inserts.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Engine, and_, select

from apps.notifications.delivery.request import DeliveryRequest
from apps.notifications.tables import notification_delivery, recipient
from apps.runtime.inserts import insert_or_keep
from pillarbox import PermanentError


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """The current addresses of a user."""

    user_id: int
    name: str
    email: str | None
    phone: str | None
    push_token: str | None


class DeliveryLog:
    """Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def recipient_of(self, request: DeliveryRequest) -> Recipient | None:
        """The recipient; None if it was delivered already. Raises PermanentError for an unknown user."""
        done = and_(
            notification_delivery.c.audience == request.audience,
            notification_delivery.c.notification_id == request.notification_id,
        )
        statement = (
            select(recipient, notification_delivery.c.id.label("delivery"))
            .outerjoin(notification_delivery, done)
            .where(recipient.c.user_id == request.user_id)
        )
        with self._engine.begin() as connection:
            row = connection.execute(statement).one_or_none()
        if row is None:
            raise PermanentError(f"there is no user {request.user_id}")
        if row.delivery is not None:
            return None
        return Recipient(
            user_id=row.user_id, name=row.name, email=row.email, phone=row.phone, push_token=row.push_token
        )

    def write(self, request: DeliveryRequest, *, attempt: int) -> None:
        """Write the row of a delivery; idempotent."""
        lock = select(recipient.c.user_id).where(recipient.c.user_id == request.user_id).with_for_update()
        with self._engine.begin() as connection:
            connection.execute(lock)
            connection.execute(
                insert_or_keep(connection.dialect.name, notification_delivery),
                {
                    "audience": request.audience,
                    "notification_id": request.notification_id,
                    "user_id": request.user_id,
                    "channel": request.channel,
                    "event_id": request.delivery_id,
                    "attempt": attempt,
                    "delivered_at": datetime.now(UTC),
                },
            )
