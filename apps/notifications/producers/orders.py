"""The order service."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Engine, insert

from apps.notifications.domain import Audience, RecipientType
from apps.notifications.producers.announcing import announcement, outbox
from apps.notifications.tables import customer_order


def create_order(engine: Engine, *, customer_id: int, user_id: int, total_cents: int) -> int:
    """Create an order; only the user who ordered is notified. Returns the id of the order."""
    with engine.begin() as connection:
        made = insert(customer_order).values(
            customer_id=customer_id, user_id=user_id, total_cents=total_cents, created_at=datetime.now(UTC)
        )
        order_id: int = connection.execute(made.returning(customer_order.c.id)).scalar_one()
        payload = {"order_id": order_id, "user_id": user_id, "total_cents": total_cents}
        outbox.record(
            connection,
            announcement(
                "ORDER_CREATED",
                payload,
                audience=Audience.CUSTOMER,
                aggregate_id=customer_id,
                to=RecipientType.SINGLE,
            ),
        )
    return order_id
