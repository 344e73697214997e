"""Layer 1: a business row and its events in one transaction, without recipients."""

import json
from datetime import UTC, datetime

import pytest
from sqlalchemy import String, cast, column, select, table
from sqlalchemy.exc import IntegrityError

from apps.notifications.producers.orders import create_order
from apps.notifications.producers.registration import register_user
from apps.notifications.producers.reservations import request_reservation
from pillarbox import RecordError
from tests.apps.notifications.app_database import AppDatabase

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def events(app: AppDatabase) -> list[tuple[str, str, str, str, dict[str, object]]]:
    """Type, audience, aggregate, recipient type, payload."""
    names = ("event_type", "aggregate_type", "aggregate_id", "headers", "payload")
    fields = [cast(column(name), String) if name == "headers" else column(name) for name in names]
    asked = select(*fields).select_from(table("outbox_message")).order_by(column("id"))
    return [
        (kind, audience, aggregate, json.loads(headers)["recipientType"], json.loads(payload))
        for kind, audience, aggregate, headers, payload in app.rows(asked)
    ]


def test_a_reservation_is_for_all_users_of_the_restaurant(app: AppDatabase) -> None:
    number = request_reservation(app.engine, restaurant_id=5, guest_name="Ada", party_size=2, reserved_for=NOON)
    payload = {
        "reservation_id": number,
        "guest_name": "Ada",
        "party_size": 2,
        "reserved_for": "2026-11-20T12:00:00+00:00",
    }
    assert events(app) == [("RESERVATION_REQUESTED", "RESTAURANT", "5", "BROADCAST", payload)]
    assert app.number("SELECT count(*) FROM reservation") == 1


def test_an_order_is_for_the_user_who_ordered(app: AppDatabase) -> None:
    number = create_order(app.engine, customer_id=7, user_id=70, total_cents=1999)
    payload = {"order_id": number, "user_id": 70, "total_cents": 1999}
    assert events(app) == [("ORDER_CREATED", "CUSTOMER", "7", "SINGLE", payload)]
    assert app.number("SELECT count(*) FROM customer_order") == 1


def test_a_registration_records_one_event_per_audience(app: AppDatabase) -> None:
    number = register_user(app.engine, agency_id=3, name="Bo", email="bo@example.org")
    payload = {"account_id": number, "agency_id": 3, "name": "Bo", "email": "bo@example.org"}
    assert events(app) == [
        ("USER_REGISTERED", "ADMIN", "1", "BROADCAST", payload),
        ("USER_REGISTERED", "AGENCY", "3", "BROADCAST", payload),
    ]


def test_a_failed_registration_leaves_neither_row_nor_event(app: AppDatabase) -> None:
    register_user(app.engine, agency_id=3, name="Bo", email="bo@example.org")
    with pytest.raises(IntegrityError):
        register_user(app.engine, agency_id=3, name="Bob", email="bo@example.org")
    assert app.number("SELECT count(*) FROM account") == 1
    assert app.number("SELECT count(*) FROM outbox_message") == 2


def test_a_rejected_event_rolls_back_its_row(app: AppDatabase) -> None:
    with pytest.raises(RecordError):
        request_reservation(app.engine, restaurant_id=5, guest_name="A" * 2**20, party_size=2, reserved_for=NOON)
    assert app.number("SELECT count(*) FROM reservation") == 0
