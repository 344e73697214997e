"""The reservation service."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Engine, insert

from apps.notifications.domain import Audience
from apps.notifications.producers.announcing import announcement, outbox
from apps.notifications.tables import reservation


def request_reservation(
    engine: Engine, *, restaurant_id: int, guest_name: str, party_size: int, reserved_for: datetime
) -> int:
    """Create a reservation; all users of the restaurant are notified. Returns the id of the reservation."""
    with engine.begin() as connection:
        made = insert(reservation).values(
            restaurant_id=restaurant_id,
            guest_name=guest_name,
            party_size=party_size,
            reserved_for=reserved_for,
            created_at=datetime.now(UTC),
        )
        reservation_id: int = connection.execute(made.returning(reservation.c.id)).scalar_one()
        payload = {
            "reservation_id": reservation_id,
            "guest_name": guest_name,
            "party_size": party_size,
            "reserved_for": reserved_for.isoformat(),
        }
        outbox.record(
            connection,
            announcement("RESERVATION_REQUESTED", payload, audience=Audience.RESTAURANT, aggregate_id=restaurant_id),
        )
    return reservation_id
