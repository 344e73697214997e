"""The relay with the shipped settings on real servers: its messages and its topology."""

import re
from typing import Any

import pytest
from sqlalchemy import text

from apps.notifications.domain import Audience
from apps.notifications.producers.orders import create_order
from apps.notifications.topology import source_of
from tests.apps.notifications import broker
from tests.apps.notifications.app_database import AppDatabase, event_for, reservation
from tests.apps.notifications.conftest import VHOST
from tests.apps.notifications.processes import run_relay
from tests.integration.rabbitmq.consumer import channel
from tests.servers.rabbitmq import RabbitMQServer


def sent(app: AppDatabase, rabbit: str) -> dict[Audience, list[Any]]:
    """Run the relay; returns the messages of each queue."""
    done = run_relay(app.url, rabbit)
    assert done.returncode == 0, done.stderr
    return {audience: broker.bodies(rabbit, audience) for audience in Audience}


def test_each_audience_has_one_message_in_its_queue_with_six_fields(postgres_app: AppDatabase, rabbit: str) -> None:
    postgres_app.record(*(event_for(audience, f"evt-{audience}", guest="Ada") for audience in Audience))
    assert sent(postgres_app, rabbit) == {
        audience: [
            {
                "event_id": f"evt-{audience}",
                "event_type": "RESERVATION_REQUESTED",
                "aggregate_type": audience,
                "aggregate_id": 5,
                "payload": {"guest": "Ada"},
                "recipientType": "BROADCAST",
            }
        ]
        for audience in Audience
    }


def test_the_producer_sets_the_recipient_type(postgres_app: AppDatabase, rabbit: str) -> None:
    number = create_order(postgres_app.engine, customer_id=7, user_id=70, total_cents=1)
    [message] = sent(postgres_app, rabbit)[Audience.CUSTOMER]
    assert message["recipientType"] == "SINGLE"
    assert message["payload"] == {"order_id": number, "user_id": 70, "total_cents": 1}


def test_an_insert_into_the_compatibility_view_becomes_the_same_message(postgres_app: AppDatabase, rabbit: str) -> None:
    with postgres_app.engine.begin() as connection:
        connection.execute(
            text("""
                INSERT INTO event_outbox
                  (event_id, event_type, aggregate_type, aggregate_id, status, payload, created_at)
                VALUES ('evt-123-456', 'RESERVATION_REQUESTED', 'RESTAURANT', 5, 'PENDING', '{"guest":"Ada"}', NOW())
            """)
        )
    [message] = sent(postgres_app, rabbit)[Audience.RESTAURANT]
    assert (message["event_id"], message["aggregate_id"], message["payload"]) == ("evt-123-456", 5, {"guest": "Ada"})
    [(status, published_at)] = postgres_app.rows(text("SELECT status, published_at FROM event_outbox"))
    assert status == "PROCESSED"
    assert published_at is not None


def test_an_insert_by_plain_sql_becomes_the_same_message(postgres_app: AppDatabase, rabbit: str) -> None:
    with postgres_app.engine.begin() as connection:
        connection.execute(
            text("""
                INSERT INTO outbox_message (event_id, event_type, aggregate_type, aggregate_id, payload)
                VALUES ('evt-123-456', 'RESERVATION_REQUESTED', 'RESTAURANT', '5', '{"guest":"Ada"}')
            """)
        )
    assert sent(postgres_app, rabbit)[Audience.RESTAURANT] == [
        {
            "event_id": "evt-123-456",
            "event_type": "RESERVATION_REQUESTED",
            "aggregate_type": "RESTAURANT",
            "aggregate_id": 5,
            "payload": {"guest": "Ada"},
            "recipientType": "BROADCAST",
        }
    ]


def test_an_event_recorded_twice_is_sent_once_and_logged(postgres_app: AppDatabase, rabbit: str) -> None:
    postgres_app.record(reservation("evt-001"))
    assert len(sent(postgres_app, rabbit)[Audience.RESTAURANT]) == 1
    postgres_app.record(reservation("evt-001"))
    done = run_relay(postgres_app.url, rabbit)
    assert broker.bodies(rabbit, Audience.RESTAURANT) == []
    skipped = "INFO pillarbox.relay.events: skipped event, already sent according to the ledger: .*event_id=evt-001 "
    assert re.search(skipped, done.stderr)
    assert postgres_app.rows(text("SELECT event_id, status FROM processed_event")) == [("evt-001", "SUCCESS")]


def test_queues_are_durable_unlimited_and_have_dead_letter_queues(
    postgres_app: AppDatabase, rabbit: str, rabbitmq_server: RabbitMQServer
) -> None:
    postgres_app.record(reservation("evt-001"))
    assert run_relay(postgres_app.url, rabbit).returncode == 0
    listed = rabbitmq_server.ctl("list_queues", "-p", VHOST, "name", "durable", "auto_delete", "arguments")
    queues = {line.split("\t")[0]: line.split("\t")[1:] for line in listed.splitlines()}
    for audience in Audience:
        durable, auto_delete, arguments = queues[audience.queue]
        assert (durable, auto_delete) == ("true", "false")
        assert set(re.findall(r'"(x-[a-z-]+)"', arguments)) == {
            "x-queue-type",
            "x-dead-letter-exchange",
            "x-dead-letter-routing-key",
            "x-delivery-limit",
        }
        assert queues[f"{audience.queue}.dlq"][:2] == ["true", "false"]
    exchanges = rabbitmq_server.ctl("list_exchanges", "-p", VHOST, "name", "type", "durable", "auto_delete")
    assert "notifications.exchange\ttopic\ttrue\tfalse" in exchanges.splitlines()
    bindings = rabbitmq_server.ctl("list_bindings", "-p", VHOST, "source_name", "routing_key", "destination_name")
    bound = [line.split("\t") for line in bindings.splitlines()]
    assert sorted(line for line in bound if line[0] == "notifications.exchange") == sorted(
        ["notifications.exchange", audience.queue, audience.queue] for audience in Audience
    )


def test_a_rejected_message_goes_to_the_dead_letter_queue(postgres_app: AppDatabase, rabbit: str) -> None:
    postgres_app.record(reservation("evt-001"))
    assert run_relay(postgres_app.url, rabbit).returncode == 0
    with channel(rabbit) as consumer:
        method, _, _ = consumer.basic_get(Audience.RESTAURANT.queue)
        assert method is not None
        assert method.delivery_tag is not None
        consumer.basic_reject(method.delivery_tag, requeue=False)
    [dead_letter] = broker.wait_for_dead_letters(rabbit, Audience.RESTAURANT)
    assert dead_letter.properties.message_id == "evt-001"


@pytest.mark.parametrize("first", ["relay", "listeners"])
async def test_relay_and_listeners_declare_the_same_topology_in_any_order(
    postgres_app: AppDatabase, rabbit: str, first: str
) -> None:
    postgres_app.record(reservation("evt-001"))
    sources = [source_of(audience, rabbit) for audience in Audience]

    async def declare() -> None:
        for source in sources:
            await source.connect()
            await source.aclose()

    if first == "listeners":
        await declare()
    done = run_relay(postgres_app.url, rabbit)
    assert done.returncode == 0, done.stderr
    if first == "relay":
        await declare()
    assert len(broker.bodies(rabbit, Audience.RESTAURANT)) == 1
