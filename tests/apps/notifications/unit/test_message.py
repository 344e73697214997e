"""The message between layers 1 and 2: both forms, and invalid messages."""

import json
from typing import Any

import pytest

from apps.notifications.domain import Audience, RecipientType
from apps.notifications.message import NotificationMessage
from pillarbox import PermanentError
from pillarbox.inbox import ConsumedEvent

ENVELOPE: dict[str, Any] = {
    "event_id": "evt-001",
    "event_type": "RESERVATION_REQUESTED",
    "aggregate_type": "RESTAURANT",
    "aggregate_id": 5,
    "payload": {"guest": "Ada"},
}
MISSING = object()


def consumed(body: object, **headers: str) -> ConsumedEvent:
    return ConsumedEvent(
        event_id="evt-001",
        event_type="RESERVATION_REQUESTED",
        payload=body,
        payload_bytes=json.dumps(body).encode(),
        content_type="application/json",
        headers=headers,
        aggregate_type=headers.get("aggregateType"),
        aggregate_id=headers.get("aggregateId"),
        schema_version=1,
        correlation_id=None,
        causation_id=None,
        trace_id=None,
        occurred_at=None,
        attempt=1,
    )


def enveloped(**changes: object) -> ConsumedEvent:
    return consumed({name: value for name, value in {**ENVELOPE, **changes}.items() if value is not MISSING})


def test_the_default_recipient_type_is_broadcast() -> None:
    assert NotificationMessage.read(enveloped()) == NotificationMessage(
        event_id="evt-001",
        event_type="RESERVATION_REQUESTED",
        audience=Audience.RESTAURANT,
        aggregate_id=5,
        recipient_type=RecipientType.BROADCAST,
        payload={"guest": "Ada"},
    )


def test_the_payload_names_a_single_recipient() -> None:
    message = NotificationMessage.read(enveloped(recipientType="SINGLE", payload={"user_id": 10}))
    assert (message.recipient_type, message.user_id) == (RecipientType.SINGLE, 10)


def test_restaurant_id_is_accepted_for_aggregate_id() -> None:
    message = NotificationMessage.read(enveloped(aggregate_id=MISSING, restaurant_id=7, recipientType="BROADCAST"))
    assert message.aggregate_id == 7


def test_the_fields_of_a_payload_are_in_the_headers() -> None:
    event = consumed({"user_id": 3}, aggregateType="CUSTOMER", aggregateId="12", recipientType="SINGLE")
    message = NotificationMessage.read(event)
    assert (message.audience, message.aggregate_id, message.user_id) == (Audience.CUSTOMER, 12, 3)
    assert message.payload == {"user_id": 3}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"event_id": "evt-002"}, "event_id is 'evt-002' in the body"),
        ({"event_type": "OTHER"}, "event_type is 'OTHER' in the body"),
        ({"aggregate_type": MISSING}, "aggregate_type must be one of RESTAURANT, CUSTOMER, AGENCY, ADMIN"),
        ({"aggregate_type": "restaurant"}, "not 'restaurant'"),
        ({"aggregate_type": ["RESTAURANT"]}, "aggregate_type must be one of"),
        ({"aggregate_id": MISSING}, "aggregate_id is missing"),
        ({"aggregate_id": "five"}, "aggregate_id must be a whole number, not 'five'"),
        ({"aggregate_id": True}, "aggregate_id must be a whole number"),
        ({"aggregate_id": 5.0}, "aggregate_id must be a whole number"),
        ({"aggregate_id": -1}, "aggregate_id must be a whole number"),
        ({"aggregate_id": 2**63}, "aggregate_id must be a whole number"),
        ({"aggregate_id": MISSING, "restaurant_id": "x"}, "restaurant_id must be a whole number"),
        ({"recipientType": "ALL"}, "recipientType must be one of BROADCAST, SINGLE, not 'ALL'"),
        ({"recipientType": ""}, "recipientType must be one of"),
        ({"recipientType": "SINGLE"}, "payload.user_id must be a whole number, not None"),
        ({"recipientType": "SINGLE", "payload": {"user_id": "ten"}}, "payload.user_id must be a whole number"),
        ({"payload": None}, "payload must be an object"),
        ({"payload": [1]}, "payload must be an object"),
    ],
)
def test_an_invalid_field_is_a_permanent_error(changes: dict[str, object], expected: str) -> None:
    with pytest.raises(PermanentError) as refused:
        NotificationMessage.read(enveloped(**changes))
    assert str(refused.value).startswith("message evt-001 is not a notification: ")
    assert expected in str(refused.value)


@pytest.mark.parametrize("body", [[], "text", 5, None, {}])
def test_a_body_without_headers_is_a_permanent_error(body: object) -> None:
    with pytest.raises(PermanentError, match="aggregate_type must be one of"):
        NotificationMessage.read(consumed(body))
