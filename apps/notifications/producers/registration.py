"""The authentication service."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Engine, insert

from apps.notifications.producers.announcing import announcement, outbox
from apps.notifications.tables import account
from apps.notifications.words import Audience

PLATFORM = 1
"""The one aggregate of the administrators."""


def register_user(engine: Engine, *, agency_id: int, name: str, email: str) -> int:
    """Open an account; the agency's users and the administrators are told, by an event each. Returns its id."""
    with engine.begin() as connection:
        made = insert(account).values(agency_id=agency_id, name=name, email=email, created_at=datetime.now(UTC))
        account_id: int = connection.execute(made.returning(account.c.id)).scalar_one()
        payload = {"account_id": account_id, "agency_id": agency_id, "name": name, "email": email}
        outbox.record(
            connection,
            announcement("USER_REGISTERED", payload, audience=Audience.ADMIN, aggregate_id=PLATFORM),
            announcement("USER_REGISTERED", payload, audience=Audience.AGENCY, aggregate_id=agency_id),
        )
    return account_id
