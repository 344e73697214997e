"""Layers 1 and 2 in one process: recipients, channels and delivery times of notifications."""

import json
from datetime import UTC, datetime, time

from sqlalchemy import select, text

from apps.notifications.database import open_store
from apps.notifications.domain import Audience, Channel
from apps.notifications.listeners import RestaurantNotificationListener
from apps.notifications.producers.orders import create_order
from apps.notifications.producers.registration import register_user
from apps.notifications.producers.reservations import request_reservation
from apps.notifications.tables import restaurant_user_notification
from pillarbox import Destination, Handlers, Relay, Route
from tests.apps.notifications.app_database import AppDatabase, combinations, reservation
from tests.apps.notifications.in_process import NIGHT, relay_all

EMAIL, PUSH, SMS, IN_APP = Channel.EMAIL, Channel.PUSH, Channel.SMS, Channel.IN_APP


async def test_each_producer_notifies_its_audiences(app: AppDatabase) -> None:
    app.add_users(10, 15, audience=Audience.RESTAURANT, aggregate_id=5)
    app.add_users(20, 21, audience=Audience.CUSTOMER, aggregate_id=7)
    app.add_users(30, audience=Audience.AGENCY, aggregate_id=3)
    app.add_users(40, 41, audience=Audience.ADMIN, aggregate_id=1)
    for audience in Audience:
        app.set_defaults(EMAIL, audience=audience)
    request_reservation(app.engine, restaurant_id=5, guest_name="Ada", party_size=2, reserved_for=NIGHT)
    create_order(app.engine, customer_id=7, user_id=21, total_cents=100)
    register_user(app.engine, agency_id=3, name="Bo", email="bo@example.org")
    await relay_all(app)
    notified = {audience: [user for _, user, _ in app.notifications(audience)] for audience in Audience}
    assert notified == {
        Audience.RESTAURANT: [10, 15],
        Audience.CUSTOMER: [21],
        Audience.AGENCY: [30],
        Audience.ADMIN: [40, 41],
    }


async def test_only_users_of_the_aggregate_are_notified(app: AppDatabase) -> None:
    app.add_users(10, aggregate_id=5)
    app.add_users(11, aggregate_id=6)
    app.add_users(12, audience=Audience.AGENCY, aggregate_id=5)
    app.set_defaults(PUSH)
    app.record(reservation("evt-1", aggregate_id=5))
    await relay_all(app)
    assert app.notifications() == [("evt-1", 10, "PUSH")]


async def test_an_event_without_recipients_creates_no_notification(app: AppDatabase) -> None:
    app.record(reservation("evt-1"))
    await relay_all(app)
    assert (app.notifications(), app.dead_letter_errors()) == ([], [])
    assert app.number("SELECT count(*) FROM outbox_inbox") == 1


async def test_preferences_and_defaults_determine_the_channels(app: AppDatabase) -> None:
    app.add_users(1, 2, 3, 4)
    app.set_defaults(EMAIL, IN_APP)
    app.set_preference(2, EMAIL, enabled=False)
    app.set_preference(3, SMS, enabled=True, event_type="RESERVATION_REQUESTED")
    app.set_preference(3, PUSH, enabled=True, event_type="ORDER_CREATED")
    for channel in Channel:
        app.set_preference(4, channel, enabled=False)
    app.record(reservation("e"))
    await relay_all(app)
    assert app.notifications() == [
        ("e", 1, "EMAIL"),
        ("e", 1, "IN_APP"),
        ("e", 2, "IN_APP"),
        ("e", 3, "EMAIL"),
        ("e", 3, "IN_APP"),
        ("e", 3, "SMS"),
    ]


async def test_quiet_hours_delay_all_channels_but_in_app(app: AppDatabase) -> None:
    app.add_users(1, time_zone="Europe/Rome")  # 00:30
    app.add_users(2, time_zone="America/New_York")  # 18:30
    app.set_defaults(EMAIL, IN_APP)
    for user in (1, 2):
        app.set_quiet_hours(user, time(22), time(7))
    app.record(reservation("e"))
    await relay_all(app, now=NIGHT)
    table = restaurant_user_notification
    found = app.rows(select(table.c.user_id, table.c.notification_type, table.c.deliver_after))
    morning = datetime(2026, 11, 11, 6, tzinfo=UTC)
    assert {(user, channel): after for user, channel, after in found} == {
        (1, "EMAIL"): morning,
        (1, "IN_APP"): None,
        (2, "EMAIL"): None,
        (2, "IN_APP"): None,
    }
    delayed = app.rows(text("SELECT ordering_key FROM delivery_message WHERE available_at IS NOT NULL"))
    assert [row[0] for row in delayed] == ["EMAIL:1"]


async def test_each_notification_has_a_delivery_request(app: AppDatabase) -> None:
    app.add_users(1, 2)
    app.set_defaults(EMAIL, PUSH)
    app.record(reservation("e", guest_name="Ada", party_size=2, reserved_for="noon"))
    await relay_all(app)
    assert app.delivery_requests() == app.notifications() == combinations(["e"], [1, 2], [EMAIL, PUSH])
    table = restaurant_user_notification
    ids = {(row.user_id, row.notification_type): row.id for row in app.rows(select(table))}
    asked = app.rows(text("SELECT event_type, correlation_id, payload FROM delivery_message"))
    assert {kind for kind, _, _ in asked} == {"notification.email", "notification.push"}
    for kind, correlation, payload in asked:
        request = json.loads(payload)
        channel = kind.removeprefix("notification.").upper()
        assert correlation == "e"
        assert request == {
            "audience": "RESTAURANT",
            "notification_id": ids[request["user_id"], channel],
            "event_id": "e",
            "user_id": request["user_id"],
            "event_type": "RESERVATION_REQUESTED",
            "title": "New reservation",
            "body": "Ada asks for a table for 2 at noon.",
        }


async def test_an_envelope_is_handled_like_a_payload(app: AppDatabase) -> None:
    app.add_users(1)
    app.set_defaults(EMAIL)
    handlers = Handlers()
    listener = RestaurantNotificationListener(app.engine, clock=lambda: NIGHT)
    handlers.add(listener.consumer)
    store = open_store(app.url)
    relay = Relay(
        store=store,
        transports={"handlers": handlers},
        destinations={"here": Destination(handlers.to(listener.consumer.name), body="envelope")},
        routes=[Route(to=["here"])],
    )
    app.record(reservation("e", guest_name="Ada"))
    await relay.run_until_empty()
    await store.aclose()
    [(event_id, payload)] = app.rows(
        select(restaurant_user_notification.c.event_id, restaurant_user_notification.c.payload)
    )
    assert (event_id, payload) == ("e", {"guest_name": "Ada"})


async def test_the_number_of_statements_does_not_depend_on_the_number_of_recipients(app: AppDatabase) -> None:
    app.add_users(1, aggregate_id=1)
    app.add_users(*range(2, 1502), aggregate_id=2)
    app.set_defaults(EMAIL, PUSH)
    counts = []
    for number, aggregate_id in enumerate((1, 1, 2)):  # the first record also checks privileges
        app.record(reservation(f"e{number}", aggregate_id=aggregate_id))
        with app.recording_statements() as sent:
            await relay_all(app)
        # Consumer statistics are written every ten seconds, independent of events.
        counts.append(len([one for one in sent if not one.startswith("BEGIN") and "inbox_statistics" not in one]))
    assert counts[1] == counts[2] <= 6
    assert len(app.notifications()) == 2 * 1502 == len(app.delivery_requests())
