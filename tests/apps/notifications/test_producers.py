"""Layer 1: a business row and its events in one transaction, without a word about recipients."""

import json
from datetime import UTC, datetime

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from apps.notifications.producers.orders import create_order
from apps.notifications.producers.registration import register_user
from apps.notifications.producers.reservations import request_reservation
from pillarbox import RecordError
from tests.apps.notifications.town import Town

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def events(town: Town) -> list[tuple[str, str, str, str, dict[str, object]]]:
    """Type, audience, aggregate, how many are told, payload."""
    columns = "event_type, aggregate_type, aggregate_id, CAST(headers AS text), payload"
    asked = text(f"SELECT {columns} FROM outbox_message ORDER BY id")
    return [
        (kind, audience, aggregate, json.loads(headers)["recipientType"], json.loads(payload))
        for kind, audience, aggregate, headers, payload in town.rows(asked)
    ]


def test_a_reservation_is_for_everybody_at_the_restaurant(town: Town) -> None:
    number = request_reservation(town.engine, restaurant_id=5, guest_name="Ada", party_size=2, reserved_for=NOON)
    payload = {
        "reservation_id": number,
        "guest_name": "Ada",
        "party_size": 2,
        "reserved_for": "2026-11-20T12:00:00+00:00",
    }
    assert events(town) == [("RESERVATION_REQUESTED", "RESTAURANT", "5", "BROADCAST", payload)]
    assert town.number("SELECT count(*) FROM reservation") == 1


def test_an_order_is_for_the_user_who_ordered(town: Town) -> None:
    number = create_order(town.engine, customer_id=7, user_id=70, total_cents=1999)
    payload = {"order_id": number, "user_id": 70, "total_cents": 1999}
    assert events(town) == [("ORDER_CREATED", "CUSTOMER", "7", "SINGLE", payload)]
    assert town.number("SELECT count(*) FROM customer_order") == 1


def test_a_registration_is_two_events_one_for_each_audience(town: Town) -> None:
    number = register_user(town.engine, agency_id=3, name="Bo", email="bo@example.org")
    payload = {"account_id": number, "agency_id": 3, "name": "Bo", "email": "bo@example.org"}
    assert events(town) == [
        ("USER_REGISTERED", "ADMIN", "1", "BROADCAST", payload),
        ("USER_REGISTERED", "AGENCY", "3", "BROADCAST", payload),
    ]


def test_a_registration_that_fails_leaves_neither_row_nor_event(town: Town) -> None:
    register_user(town.engine, agency_id=3, name="Bo", email="bo@example.org")
    with pytest.raises(IntegrityError):
        register_user(town.engine, agency_id=3, name="Bob", email="bo@example.org")
    assert town.number("SELECT count(*) FROM account") == 1
    assert town.number("SELECT count(*) FROM outbox_message") == 2


def test_an_event_that_is_refused_takes_its_row_along(town: Town) -> None:
    with pytest.raises(RecordError):
        request_reservation(town.engine, restaurant_id=5, guest_name="A" * 2**20, party_size=2, reserved_for=NOON)
    assert town.number("SELECT count(*) FROM reservation") == 0
