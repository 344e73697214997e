"""The authentication service."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Engine, insert

from apps.notifications.domain import Audience
from apps.notifications.producers.announcing import announcement, outbox
from apps.notifications.tables import account

PLATFORM = 1
"""The one aggregate of the administrators."""


def register_user(engine: Engine, *, agency_id: int, name: str, email: str) -> int:
    """Create an account; one event notifies the agency's users, another the administrators. Returns the account id."""
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
