"""Both layers in one process on one database: who is told, by which channel, and not before when."""

import json
from datetime import UTC, datetime, time

from sqlalchemy import select, text

from apps.notifications.database import open_store
from apps.notifications.listeners import RestaurantNotificationListener
from apps.notifications.producers.orders import create_order
from apps.notifications.producers.registration import register_user
from apps.notifications.producers.reservations import request_reservation
from apps.notifications.tables import restaurant_user_notification
from apps.notifications.words import Audience, Channel
from pillarbox import Destination, Handlers, Relay, Route
from tests.apps.notifications.in_process import NIGHT, carry
from tests.apps.notifications.town import Town, everybody, reservation

EMAIL, PUSH, SMS, IN_APP = Channel.EMAIL, Channel.PUSH, Channel.SMS, Channel.IN_APP


async def test_each_producer_reaches_its_audiences(town: Town) -> None:
    town.settle(10, 15, audience=Audience.RESTAURANT, aggregate_id=5)
    town.settle(20, 21, audience=Audience.CUSTOMER, aggregate_id=7)
    town.settle(30, audience=Audience.AGENCY, aggregate_id=3)
    town.settle(40, 41, audience=Audience.ADMIN, aggregate_id=1)
    for audience in Audience:
        town.offer(EMAIL, audience=audience)
    request_reservation(town.engine, restaurant_id=5, guest_name="Ada", party_size=2, reserved_for=NIGHT)
    create_order(town.engine, customer_id=7, user_id=21, total_cents=100)
    register_user(town.engine, agency_id=3, name="Bo", email="bo@example.org")
    await carry(town)
    told = {audience: [user for _, user, _ in town.told(audience)] for audience in Audience}
    assert told == {
        Audience.RESTAURANT: [10, 15],
        Audience.CUSTOMER: [21],
        Audience.AGENCY: [30],
        Audience.ADMIN: [40, 41],
    }


async def test_only_the_users_of_the_aggregate_are_told(town: Town) -> None:
    town.settle(10, aggregate_id=5)
    town.settle(11, aggregate_id=6)
    town.settle(12, audience=Audience.AGENCY, aggregate_id=5)
    town.offer(PUSH)
    town.record(reservation("evt-1", aggregate_id=5))
    await carry(town)
    assert town.told() == [("evt-1", 10, "PUSH")]


async def test_nobody_to_tell_is_done_with_nothing(town: Town) -> None:
    town.record(reservation("evt-1"))
    await carry(town)
    assert (town.told(), town.dead()) == ([], [])
    assert town.number("SELECT count(*) FROM outbox_inbox") == 1


async def test_choices_and_defaults_decide_the_channels(town: Town) -> None:
    town.settle(1, 2, 3, 4)
    town.offer(EMAIL, IN_APP)
    town.choose(2, EMAIL, enabled=False)
    town.choose(3, SMS, enabled=True, event_type="RESERVATION_REQUESTED")
    town.choose(3, PUSH, enabled=True, event_type="ORDER_CREATED")
    for channel in Channel:
        town.choose(4, channel, enabled=False)
    town.record(reservation("e"))
    await carry(town)
    assert town.told() == [
        ("e", 1, "EMAIL"),
        ("e", 1, "IN_APP"),
        ("e", 2, "IN_APP"),
        ("e", 3, "EMAIL"),
        ("e", 3, "IN_APP"),
        ("e", 3, "SMS"),
    ]


async def test_quiet_hours_delay_all_but_the_inbox_of_the_application(town: Town) -> None:
    town.settle(1, time_zone="Europe/Rome")  # 00:30
    town.settle(2, time_zone="America/New_York")  # 18:30
    town.offer(EMAIL, IN_APP)
    for user in (1, 2):
        town.keep_quiet(user, time(22), time(7))
    town.record(reservation("e"))
    await carry(town, now=NIGHT)
    table = restaurant_user_notification
    found = town.rows(select(table.c.user_id, table.c.notification_type, table.c.deliver_after))
    morning = datetime(2026, 11, 11, 6, tzinfo=UTC)
    assert {(user, channel): after for user, channel, after in found} == {
        (1, "EMAIL"): morning,
        (1, "IN_APP"): None,
        (2, "EMAIL"): None,
        (2, "IN_APP"): None,
    }
    delayed = town.rows(text("SELECT ordering_key FROM delivery_message WHERE available_at IS NOT NULL"))
    assert [row[0] for row in delayed] == ["EMAIL:1"]


async def test_for_each_notification_its_delivery_is_asked_for_in_the_same_transaction(town: Town) -> None:
    town.settle(1, 2)
    town.offer(EMAIL, PUSH)
    town.record(reservation("e", guest_name="Ada", party_size=2, reserved_for="noon"))
    await carry(town)
    assert town.asked_for() == town.told() == everybody(["e"], [1, 2], [EMAIL, PUSH])
    table = restaurant_user_notification
    ids = {(row.user_id, row.notification_type): row.id for row in town.rows(select(table))}
    asked = town.rows(text("SELECT event_type, correlation_id, payload FROM delivery_message"))
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


async def test_an_envelope_means_the_same_as_the_bare_payload(town: Town) -> None:
    town.settle(1)
    town.offer(EMAIL)
    handlers = Handlers()
    listener = RestaurantNotificationListener(town.engine, clock=lambda: NIGHT)
    handlers.add(listener.consumer)
    store = open_store(town.url)
    relay = Relay(
        store=store,
        transports={"handlers": handlers},
        destinations={"here": Destination(handlers.to(listener.consumer.name), body="envelope")},
        routes=[Route(to=["here"])],
    )
    town.record(reservation("e", guest_name="Ada"))
    await relay.run_until_empty()
    await store.aclose()
    [(told, payload)] = town.rows(
        select(restaurant_user_notification.c.event_id, restaurant_user_notification.c.payload)
    )
    assert (told, payload) == ("e", {"guest_name": "Ada"})


async def test_the_number_of_statements_does_not_depend_on_the_number_of_recipients(town: Town) -> None:
    town.settle(1, aggregate_id=1)
    town.settle(*range(2, 1502), aggregate_id=2)
    town.offer(EMAIL, PUSH)
    counts = []
    for number, aggregate_id in enumerate((1, 1, 2)):  # the first time the outbox asks what it may do, too
        town.record(reservation(f"e{number}", aggregate_id=aggregate_id))
        with town.noting_statements() as sent:
            await carry(town)
        # The tally is written once in ten seconds, whatever comes.
        counts.append(len([one for one in sent if not one.startswith("BEGIN") and "inbox_statistics" not in one]))
    assert counts[1] == counts[2] <= 6
    assert len(town.told()) == 2 * 1502 == len(town.asked_for())
