"""Listeners as processes on RabbitMQ and PostgreSQL: notifications, duplicates and failures."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from apps.notifications.domain import Audience, Channel
from apps.notifications.producers.orders import create_order
from apps.notifications.producers.registration import register_user
from tests.apps.notifications import broker
from tests.apps.notifications.app_database import AppDatabase, combinations, reservation
from tests.apps.notifications.processes import Fleet, Process, notifications
from tests.integration.rabbitmq.consumer import channel, publish_confirmed
from tests.servers.waiting import wait_until

BOUND = 90.0
EMAIL, PUSH = Channel.EMAIL, Channel.PUSH


@pytest.fixture
def app(postgres_app: AppDatabase) -> AppDatabase:
    for audience in Audience:
        postgres_app.set_defaults(EMAIL, PUSH, audience=audience)
    postgres_app.add_users(10, 15)
    return postgres_app


def wait_for_log(process: Process, pattern: str) -> None:
    """Wait for a log line."""
    try:
        wait_until(
            lambda: re.search(pattern, process.log_text()) is not None, bound=BOUND, what=f"the log line {pattern!r}"
        )
    except TimeoutError:
        print(process.log_text())
        raise


def wait_for(condition: Callable[[], bool], fleet: Fleet, what: str) -> None:
    try:
        wait_until(condition, bound=BOUND, what=what)
    except TimeoutError:
        print(fleet.log_texts())
        raise


def test_business_transactions_become_notifications_of_every_audience(
    app: AppDatabase, fleet: Fleet, rabbit: str
) -> None:
    app.add_users(20, 21, audience=Audience.CUSTOMER, aggregate_id=7)
    app.add_users(30, audience=Audience.AGENCY, aggregate_id=3)
    app.add_users(40, audience=Audience.ADMIN, aggregate_id=1)
    listener, relay = fleet.listener(), fleet.relay()
    app.record(reservation("evt-001"))
    create_order(app.engine, customer_id=7, user_id=21, total_cents=100)
    register_user(app.engine, agency_id=3, name="Bo", email="bo@example.org")
    wanted = {Audience.RESTAURANT: [10, 15], Audience.CUSTOMER: [21], Audience.AGENCY: [30], Audience.ADMIN: [40]}
    for audience, users in wanted.items():
        wait_for(lambda: len(app.notifications(audience)) == 2 * len(users), fleet, f"{audience} is notified")  # noqa: B023 - called at once
        assert [(user, channel) for _, user, channel in app.notifications(audience)] == [
            (user, channel) for user in users for channel in ("EMAIL", "PUSH")
        ]
    assert app.number("SELECT count(*) FROM delivery_message") == 2 * 5
    for process in (listener, relay):
        process.terminate()
        assert process.wait() == 0, process.log_text()
    assert [broker.ready(rabbit, audience.queue) for audience in Audience] == [0, 0, 0, 0]


def test_a_listener_of_one_audience_ignores_the_others(app: AppDatabase, fleet: Fleet, rabbit: str) -> None:
    app.add_users(40, audience=Audience.ADMIN, aggregate_id=1)
    listener = fleet.listener("admin")
    fleet.relay()
    app.record(reservation("evt-001"))
    register_user(app.engine, agency_id=3, name="Bo", email="bo@example.org")
    wait_for(lambda: len(app.notifications(Audience.ADMIN)) == 2, fleet, "the administrator is notified")
    listener.terminate()
    assert listener.wait() == 0
    assert app.notifications(Audience.RESTAURANT) == []
    wait_for(lambda: broker.ready(rabbit, Audience.RESTAURANT.queue) == 1, fleet, "the restaurant's message waits")


def test_a_message_of_another_producer_is_handled(app: AppDatabase, fleet: Fleet, rabbit: str) -> None:
    fleet.listener("RESTAURANT")
    body = {
        "event_id": "evt-001",
        "event_type": "RESERVATION_REQUESTED",
        "aggregate_type": "RESTAURANT",
        "recipientType": "BROADCAST",
        "restaurant_id": 5,
        "payload": {},
    }
    publish_to_listener(rabbit, body)
    wait_for(
        lambda: app.notifications() == combinations(["evt-001"], [10, 15], [EMAIL, PUSH]), fleet, "both are notified"
    )


def test_messages_without_properties_are_handled_and_duplicates_skipped(
    app: AppDatabase, fleet: Fleet, rabbit: str
) -> None:
    """As sent by Spring's `convertAndSend`: JSON with id and type in the body, and no properties."""
    listener = fleet.listener()
    for audience in Audience:
        app.add_users(50, audience=audience, aggregate_id=9)
        wait_for(lambda: broker.has_consumer(rabbit, audience.queue), fleet, "the queue has a consumer")  # noqa: B023 - called at once
        fields = {"event_id": "evt-004", "event_type": "SOMETHING_NEW", "aggregate_type": audience, "aggregate_id": 9}
        bare = {"payload": {}, **fields}
        nameless = {name: value for name, value in bare.items() if name != "event_id"}
        with channel(rabbit) as producer:
            producer.confirm_delivery()
            for body in (bare, bare, nameless):
                message = json.dumps(body).encode()
                publish_confirmed(producer, "notifications.exchange", audience.queue, message)
    for audience in Audience:
        wait_for(lambda: len(app.notifications(audience)) == 2, fleet, f"{audience} is notified")  # noqa: B023 - called at once
        wait_for_log(
            listener, f"WARNING .*event already processed, skipping: consumer={audience.queue} event_id=evt-004"
        )
        [dead_letter] = broker.wait_for_dead_letters(rabbit, audience)
        assert "the body has no field 'event_id'" in str((dead_letter.properties.headers or {})["pillarbox-reason"])
        assert app.notifications(audience) == combinations(["evt-004"], [50], [EMAIL, PUSH])


def test_a_duplicate_is_skipped_with_a_warning_and_acked(app: AppDatabase, fleet: Fleet, rabbit: str) -> None:
    listener = fleet.listener("RESTAURANT")
    body = envelope("evt-001")
    publish_to_listener(rabbit, body)
    publish_to_listener(rabbit, body)
    wait_for_log(listener, "WARNING .*event already processed, skipping: .*event_id=evt-001")
    listener.terminate()
    assert listener.wait() == 0
    assert app.notifications() == app.delivery_requests() == combinations(["evt-001"], [10, 15], [EMAIL, PUSH])
    assert broker.ready(rabbit, Audience.RESTAURANT.queue) == 0


def test_an_existing_notification_is_kept_and_the_message_acked(app: AppDatabase, fleet: Fleet, rabbit: str) -> None:
    with app.engine.begin() as connection:
        connection.execute(
            text("""
                INSERT INTO restaurant_user_notification
                  (event_id, user_id, notification_type, event_type, aggregate_id, title, body, payload, created_at)
                VALUES ('evt-001', 15, 'PUSH', 'RESERVATION_REQUESTED', 5, 'as it was', '', '{}', now())
            """)
        )
    listener = fleet.listener("RESTAURANT", verbose=True)
    publish_to_listener(rabbit, envelope("evt-001"))
    wait_for_log(listener, "DEBUG .*notification already exists, skipping: event_id=evt-001 user_id=15 channel=PUSH")
    wait_for(lambda: len(app.notifications()) == 4, fleet, "the others are notified")
    listener.terminate()
    assert listener.wait() == 0
    assert len(app.delivery_requests()) == 3
    assert "ERROR" not in listener.log_text()
    assert broker.ready(rabbit, Audience.RESTAURANT.queue) == 0


def test_an_invalid_message_is_dead_lettered_at_once(app: AppDatabase, fleet: Fleet, rabbit: str) -> None:
    listener = fleet.listener("RESTAURANT")
    publish_to_listener(rabbit, envelope("evt-001") | {"aggregate_id": "five"})
    publish_to_listener(rabbit, envelope("evt-002"))
    [dead_letter] = broker.wait_for_dead_letters(rabbit, Audience.RESTAURANT)
    assert dead_letter.properties.message_id == "evt-001"
    assert "aggregate_id must be a whole number" in str((dead_letter.properties.headers or {})["pillarbox-reason"])
    wait_for_log(listener, "ERROR .*dead-lettered event: .*event_id=evt-001 .*attempt=1")
    wait_for(lambda: len(app.notifications()) == 4, fleet, "the other message is handled")
    assert {event for event, _, _ in app.notifications()} == {"evt-002"}


def test_a_failed_message_is_logged_and_redelivered(app: AppDatabase, fleet: Fleet, rabbit: str) -> None:
    listener = fleet.listener("RESTAURANT")
    single = envelope("evt-001") | {"recipientType": "SINGLE", "payload": {"user_id": 99}}
    publish_to_listener(rabbit, single)
    wait_for_log(listener, "ERROR .*event failed, will retry: .*event_id=evt-001 .*user 99, who is not among")
    app.add_users(99, aggregate_id=6)
    wait_for(
        lambda: app.notifications() == combinations(["evt-001"], [99], [EMAIL, PUSH]), fleet, "user 99 is notified"
    )


@pytest.mark.parametrize(
    ("arguments", "variables", "complaint"),
    [
        (["listen"], {}, "PILLARBOX_TRANSPORT is not set"),
        (["listen"], {"PILLARBOX_TRANSPORT": "amqp://a:secret@b/"}, "PILLARBOX_STORE is not set"),
        (
            ["listen"],
            {"PILLARBOX_TRANSPORT": "stdout://a:secret@b/", "PILLARBOX_STORE": "sqlite:///x.db"},
            "use the URL of a broker",
        ),
        (
            ["listen"],
            {"PILLARBOX_TRANSPORT": "http://b/secret", "PILLARBOX_STORE": "sqlite:///x.db"},
            "PILLARBOX_TRANSPORTS__BROKER__SECRETS is not set",
        ),
        (["listen"], {"PILLARBOX_TRANSPORT": "amqp://b/", "PILLARBOX_STORE": "mysql://a:secret@b/"}, "postgresql://"),
        (["migrate"], {}, "PILLARBOX_STORE is not set"),
        (["migrate"], {"PILLARBOX_STORE": "postgresql://a:secret@127.0.0.1:1/x"}, "cannot be used"),
        (["listen", "PIGEON"], {}, "'PIGEON' is not one of"),
        (["listen", "--prefetch", "0"], {}, "prefetch"),
    ],
)
def test_an_invalid_command_line_is_an_error_without_passwords(
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


def publish_to_listener(rabbit: str, body: dict[str, object]) -> None:
    queue = Audience.RESTAURANT.queue
    wait_until(lambda: broker.has_consumer(rabbit, queue), bound=BOUND, what=f"{queue} has a listener")
    broker.publish(
        rabbit, Audience.RESTAURANT, body, event_id=str(body["event_id"]), event_type="RESERVATION_REQUESTED"
    )


def test_listeners_run_on_sqlite(sqlite_database: str, rabbit: str, tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, database=sqlite_database, broker=rabbit)
    try:
        with AppDatabase.of(sqlite_database) as app:
            app.add_users(10, 15)
            app.set_defaults(EMAIL, PUSH)
            fleet.relay()
            fleet.listener("RESTAURANT")
            app.record(*(reservation(f"evt-{number:03}") for number in range(50)))
            wait_for(lambda: len(app.notifications()) == 200, fleet, "all notifications exist")
            assert app.notifications() == app.delivery_requests()
    finally:
        fleet.close()
