"""Title and body of notifications."""

from collections.abc import Mapping

import pytest

from apps.notifications.domain import Audience, RecipientType
from apps.notifications.message import NotificationMessage
from apps.notifications.orchestration.wording import Wording, wording_of


def message(event_type: str, payload: Mapping[str, object]) -> NotificationMessage:
    return NotificationMessage(
        event_id="evt-1",
        event_type=event_type,
        audience=Audience.RESTAURANT,
        aggregate_id=5,
        recipient_type=RecipientType.BROADCAST,
        payload=payload,
    )


def test_a_known_event_type_has_its_own_wording() -> None:
    payload = {"guest_name": "Ada {x}", "party_size": 2, "reserved_for": "noon"}
    assert wording_of(message("RESERVATION_REQUESTED", payload)) == Wording(
        "New reservation", "Ada {x} asks for a table for 2 at noon."
    )


@pytest.mark.parametrize(
    ("event_type", "title"),
    [("TABLE_FREED", "Table freed"), ("RESERVATION_REQUESTED", "Reservation requested")],
)
def test_an_unknown_event_type_or_missing_field_uses_the_generic_wording(event_type: str, title: str) -> None:
    assert wording_of(message(event_type, {})) == Wording(title, f"{title}: restaurant 5.")
