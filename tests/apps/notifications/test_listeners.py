"""Listeners as processes on RabbitMQ and PostgreSQL: from a business row to notifications, and what goes wrong."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from apps.notifications.producers.orders import create_order
from apps.notifications.producers.registration import register_user
from apps.notifications.words import Audience, Channel
from tests.apps.notifications import broker
from tests.apps.notifications.processes import Fleet, Process, notifications
from tests.apps.notifications.town import Town, everybody, reservation
from tests.integration.rabbitmq.consumer import channel
from tests.servers.waiting import wait_until

BOUND = 90.0
EMAIL, PUSH = Channel.EMAIL, Channel.PUSH


@pytest.fixture
def town(postgres_town: Town) -> Town:
    for audience in Audience:
        postgres_town.offer(EMAIL, PUSH, audience=audience)
    postgres_town.settle(10, 15)
    return postgres_town


def hears(process: Process, words: str) -> None:
    """Wait until it says so."""
    try:
        wait_until(lambda: re.search(words, process.story()) is not None, bound=BOUND, what=f"{words!r} is said")
    except TimeoutError:
        print(process.story())
        raise


def wait_for(fact: Callable[[], bool], fleet: Fleet, what: str) -> None:
    try:
        wait_until(fact, bound=BOUND, what=what)
    except TimeoutError:
        print(fleet.stories())
        raise


def test_from_the_business_rows_to_the_notifications_of_every_audience(town: Town, fleet: Fleet, rabbit: str) -> None:
    town.settle(20, 21, audience=Audience.CUSTOMER, aggregate_id=7)
    town.settle(30, audience=Audience.AGENCY, aggregate_id=3)
    town.settle(40, audience=Audience.ADMIN, aggregate_id=1)
    listener, relay = fleet.listener(), fleet.relay()
    town.record(reservation("evt-001"))
    create_order(town.engine, customer_id=7, user_id=21, total_cents=100)
    register_user(town.engine, agency_id=3, name="Bo", email="bo@example.org")
    wanted = {Audience.RESTAURANT: [10, 15], Audience.CUSTOMER: [21], Audience.AGENCY: [30], Audience.ADMIN: [40]}
    for audience, users in wanted.items():
        wait_for(lambda: len(town.told(audience)) == 2 * len(users), fleet, f"{audience} is told")  # noqa: B023 - called at once
        assert [(user, way) for _, user, way in town.told(audience)] == [
            (user, way) for user in users for way in ("EMAIL", "PUSH")
        ]
    assert town.number("SELECT count(*) FROM delivery_message") == 2 * 5
    for process in (listener, relay):
        process.terminate()
        assert process.wait() == 0, process.story()
    assert [broker.ready(rabbit, audience.queue) for audience in Audience] == [0, 0, 0, 0]


def test_a_listener_of_one_audience_leaves_the_others_alone(town: Town, fleet: Fleet, rabbit: str) -> None:
    town.settle(40, audience=Audience.ADMIN, aggregate_id=1)
    listener = fleet.listener("admin")
    fleet.relay()
    town.record(reservation("evt-001"))
    register_user(town.engine, agency_id=3, name="Bo", email="bo@example.org")
    wait_for(lambda: len(town.told(Audience.ADMIN)) == 2, fleet, "the administrator is told")
    listener.terminate()
    assert listener.wait() == 0
    assert town.told(Audience.RESTAURANT) == []
    wait_for(lambda: broker.ready(rabbit, Audience.RESTAURANT.queue) == 1, fleet, "the restaurant's message waits")


def test_a_message_of_another_producer_is_understood(town: Town, fleet: Fleet, rabbit: str) -> None:
    fleet.listener("RESTAURANT")
    body = {
        "event_id": "evt-001",
        "event_type": "RESERVATION_REQUESTED",
        "aggregate_type": "RESTAURANT",
        "recipientType": "BROADCAST",
        "restaurant_id": 5,
        "payload": {},
    }
    publish_to_the_listener(rabbit, body)
    wait_for(lambda: town.told() == everybody(["evt-001"], [10, 15], [EMAIL, PUSH]), fleet, "both are told")


def test_messages_without_any_properties_are_understood_and_known_when_they_are_repeated(
    town: Town, fleet: Fleet, rabbit: str
) -> None:
    """As Spring's `convertAndSend` sends them: JSON that carries its own id and type, and nothing beside it."""
    listener = fleet.listener()
    for audience in Audience:
        town.settle(50, audience=audience, aggregate_id=9)
        wait_for(lambda: broker.is_listened_to(rabbit, audience.queue), fleet, "somebody listens")  # noqa: B023 - called at once
        told = {"event_id": "evt-004", "event_type": "SOMETHING_NEW", "aggregate_type": audience, "aggregate_id": 9}
        bare = {"payload": {}, **told}
        nameless = {name: value for name, value in bare.items() if name != "event_id"}
        with channel(rabbit) as producer:
            producer.confirm_delivery()
            for body in (bare, bare, nameless):
                message = json.dumps(body).encode()
                producer.basic_publish("notifications.exchange", audience.queue, message, mandatory=True)
    for audience in Audience:
        wait_for(lambda: len(town.told(audience)) == 2, fleet, f"{audience} is told")  # noqa: B023 - called at once
        hears(listener, f"WARNING .*event already processed, skipping: consumer={audience.queue} event_id=evt-004")
        [letter] = broker.wait_for_dead_letters(rabbit, audience)
        assert "the body has no field 'event_id'" in str((letter.properties.headers or {})["pillarbox-reason"])
        assert town.told(audience) == everybody(["evt-004"], [50], [EMAIL, PUSH])


def test_a_repeat_is_skipped_with_a_warning_and_acked(town: Town, fleet: Fleet, rabbit: str) -> None:
    listener = fleet.listener("RESTAURANT")
    body = envelope("evt-001")
    publish_to_the_listener(rabbit, body)
    publish_to_the_listener(rabbit, body)
    hears(listener, "WARNING .*event already processed, skipping: .*event_id=evt-001")
    listener.terminate()
    assert listener.wait() == 0
    assert town.told() == town.asked_for() == everybody(["evt-001"], [10, 15], [EMAIL, PUSH])
    assert broker.ready(rabbit, Audience.RESTAURANT.queue) == 0


def test_a_notification_that_exists_is_no_error_and_the_message_is_acked(town: Town, fleet: Fleet, rabbit: str) -> None:
    with town.engine.begin() as connection:
        connection.execute(
            text("""
                INSERT INTO restaurant_user_notification
                  (event_id, user_id, notification_type, event_type, aggregate_id, title, body, payload, created_at)
                VALUES ('evt-001', 15, 'PUSH', 'RESERVATION_REQUESTED', 5, 'as it was', '', '{}', now())
            """)
        )
    listener = fleet.listener("RESTAURANT", verbose=True)
    publish_to_the_listener(rabbit, envelope("evt-001"))
    hears(listener, "DEBUG .*notification already exists, skipping: event_id=evt-001 user_id=15 channel=PUSH")
    wait_for(lambda: len(town.told()) == 4, fleet, "the others are told")
    listener.terminate()
    assert listener.wait() == 0
    assert len(town.asked_for()) == 3
    assert "ERROR" not in listener.story()
    assert broker.ready(rabbit, Audience.RESTAURANT.queue) == 0


def test_what_can_never_be_understood_is_a_dead_letter_at_once(town: Town, fleet: Fleet, rabbit: str) -> None:
    listener = fleet.listener("RESTAURANT")
    publish_to_the_listener(rabbit, envelope("evt-001") | {"aggregate_id": "five"})
    publish_to_the_listener(rabbit, envelope("evt-002"))
    [letter] = broker.wait_for_dead_letters(rabbit, Audience.RESTAURANT)
    assert letter.properties.message_id == "evt-001"
    assert "aggregate_id must be a whole number" in str((letter.properties.headers or {})["pillarbox-reason"])
    hears(listener, "ERROR .*dead-lettered event: .*event_id=evt-001 .*attempt=1")
    wait_for(lambda: len(town.told()) == 4, fleet, "its neighbour is handled")
    assert {event for event, _, _ in town.told()} == {"evt-002"}


def test_what_fails_is_an_error_and_comes_again(town: Town, fleet: Fleet, rabbit: str) -> None:
    listener = fleet.listener("RESTAURANT")
    single = envelope("evt-001") | {"recipientType": "SINGLE", "payload": {"user_id": 99}}
    publish_to_the_listener(rabbit, single)
    hears(listener, "ERROR .*event failed, will retry: .*event_id=evt-001 .*user 99, who is not among")
    town.settle(99, aggregate_id=6)
    wait_for(lambda: town.told() == everybody(["evt-001"], [99], [EMAIL, PUSH]), fleet, "user 99 is told")


@pytest.mark.parametrize(
    ("arguments", "variables", "complaint"),
    [
        (["listen"], {}, "PILLARBOX_TRANSPORT is not set"),
        (["listen"], {"PILLARBOX_TRANSPORT": "amqp://a:secret@b/"}, "PILLARBOX_STORE is not set"),
        (["listen"], {"PILLARBOX_TRANSPORT": "http://a:secret@b/", "PILLARBOX_STORE": "sqlite:///x.db"}, "amqp://"),
        (["listen"], {"PILLARBOX_TRANSPORT": "amqp://b/", "PILLARBOX_STORE": "mysql://a:secret@b/"}, "postgresql://"),
        (["migrate"], {}, "PILLARBOX_STORE is not set"),
        (["migrate"], {"PILLARBOX_STORE": "postgresql://a:secret@127.0.0.1:1/x"}, "cannot be used"),
        (["listen", "nobody"], {}, "'nobody' is not one of"),
        (["listen", "--prefetch", "0"], {}, "prefetch"),
    ],
)
def test_what_is_wrong_is_told_at_once_and_without_passwords(
    arguments: list[str], variables: dict[str, str], complaint: str
) -> None:
    done = notifications(*arguments, **variables)
    assert done.returncode in (1, 2)
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr


def envelope(event_id: str) -> dict[str, object]:
    return {
        "event_id": event_id,
        "event_type": "RESERVATION_REQUESTED",
        "aggregate_type": "RESTAURANT",
        "aggregate_id": 5,
        "payload": {},
    }


def publish_to_the_listener(rabbit: str, body: dict[str, object]) -> None:
    queue = Audience.RESTAURANT.queue
    wait_until(lambda: broker.is_listened_to(rabbit, queue), bound=BOUND, what=f"{queue} has a listener")
    broker.publish(
        rabbit, Audience.RESTAURANT, body, event_id=str(body["event_id"]), event_type="RESERVATION_REQUESTED"
    )


def test_sqlite_serves_as_well(sqlite_database: str, rabbit: str, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, database=sqlite_database, broker=rabbit)
    try:
        with Town.of(sqlite_database) as town:
            town.settle(10, 15)
            town.offer(EMAIL, PUSH)
            fleet.relay()
            fleet.listener("RESTAURANT")
            town.record(*(reservation(f"evt-{number:03}") for number in range(50)))
            wait_for(lambda: len(town.told()) == 200, fleet, "everybody is told everything")
            assert town.told() == town.asked_for()
    finally:
        fleet.close()
