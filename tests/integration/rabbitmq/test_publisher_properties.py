"""The properties of published messages, read with pika, are those of docs/reference/message-properties.md."""

import time
from datetime import UTC, datetime

import pytest

from pillarbox import Destination, Event, Outbox, Relay, Route
from pillarbox.core.transport import Outgoing
from pillarbox.relay.envelope import CloudEvents, outgoing_headers
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.rabbitmq import Queue, RabbitMQTransport
from tests.integration.rabbitmq.conftest import MakeTransport
from tests.integration.rabbitmq.consumer import Taken, take_all

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def full(queue: str) -> Outgoing:
    made = outgoing(
        "evt-001", RabbitMQTransport.to(routing_key=queue), body=b'{"id":42}', content_type="application/json"
    )
    message = made.message._replace(
        event_type="order.placed",
        aggregate_type="ORDER",
        aggregate_id="42",
        schema_version=3,
        correlation_id="request-7",
        causation_id="evt-000",
        trace_id=TRACE,
        occurred_at=WHEN,
        headers_json='{"tenant": "acme", "replayof": "evt-000", "tracestate": "shop=7"}',
    )
    return with_headers(made._replace(message=message))


def with_headers(one: Outgoing) -> Outgoing:
    """As the relay hands it over."""
    return one._replace(headers=outgoing_headers(one.message))


async def sent(make: MakeTransport, url: str, queue: str, one: Outgoing) -> Taken:
    # A classic queue, because a quorum queue adds x-delivery-count of its own.
    assert await make(queues=[Queue(name=queue, type="classic")]).send([one]) == [None]
    [taken] = take_all(url, queue)
    return taken


async def test_every_property_is_as_documented(make: MakeTransport, url: str, queue: str) -> None:
    before = int(time.time())
    taken = await sent(make, url, queue, full(queue))
    seen = {name: value for name, value in vars(taken.properties).items() if value is not None}
    assert before <= seen.pop("timestamp") <= time.time()
    assert seen == {
        "message_id": "evt-001",
        "content_type": "application/json",
        "type": "order.placed",
        "correlation_id": "request-7",
        "delivery_mode": 2,
        "headers": {
            "eventType": "order.placed",
            "aggregateType": "ORDER",
            "aggregateId": "42",
            "occurredAt": "2026-01-02T03:04:05.678901Z",
            "schemaVersion": 3,
            "causationId": "evt-000",
            "traceparent": TRACE,
            "tracestate": "shop=7",
            "tenant": "acme",
            "replayof": "evt-000",
        },
    }
    assert taken.body == b'{"id":42}'


async def test_properties_without_a_value_are_left_out(make: MakeTransport, url: str, queue: str) -> None:
    one = full(queue)
    bare = one.message._replace(
        aggregate_type=None, aggregate_id=None, correlation_id=None, causation_id=None, trace_id=None
    )
    bare = bare._replace(headers_json="{}")
    taken = await sent(make, url, queue, with_headers(one._replace(message=bare)))
    assert taken.properties.correlation_id is None
    assert set(taken.properties.headers or {}) == {"eventType", "occurredAt", "schemaVersion"}


@pytest.mark.parametrize(
    "trace_id",
    [
        "trace-7",
        TRACE.upper(),
        TRACE + "-extra",
        "ff" + TRACE[2:],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
    ],
)
async def test_an_invalid_traceparent_is_not_sent_as_one(
    make: MakeTransport, url: str, queue: str, trace_id: str
) -> None:
    one = full(queue)
    taken = await sent(make, url, queue, with_headers(one._replace(message=one.message._replace(trace_id=trace_id))))
    assert "traceparent" not in (taken.properties.headers or {})


async def test_a_header_of_the_producer_does_not_replace_one_of_ours(make: MakeTransport, url: str, queue: str) -> None:
    one = full(queue)
    given = '{"eventType": "something.else", "schemaVersion": "9", "mine": "kept"}'
    forged = with_headers(one._replace(message=one.message._replace(headers_json=given)))
    headers = (await sent(make, url, queue, forged)).properties.headers or {}
    assert (headers["eventType"], headers["schemaVersion"], headers["mine"]) == ("order.placed", 3, "kept")


async def test_a_cloudevent_in_binary_mode_is_its_payload_with_attributes_in_headers(
    make: MakeTransport, url: str, queue: str
) -> None:
    transport = make(queues=[Queue(name=queue, type="classic")])
    await transport.declare_topology()
    store, body = MemoryStore(), CloudEvents(source="/shop/orders", mode="binary")
    with store.transaction() as transaction:
        Outbox().record(
            transaction,
            Event("order.placed", {"größe": 7}, event_id="evt-001", aggregate_type="ORDER", aggregate_id="42 %"),
        )
    destination = Destination(RabbitMQTransport.to(routing_key=queue), body=body)
    relay = Relay(
        store=store, transports={"rabbit": transport}, destinations={"shop": destination}, routes=[Route(to=["shop"])]
    )
    await relay.run_until_empty()
    [taken] = take_all(url, queue)
    assert taken.body == '{"größe":7}'.encode()
    assert taken.properties.content_type == "application/json"
    headers = taken.properties.headers
    assert headers is not None
    prefixed = {name: value for name, value in headers.items() if name.startswith("cloudEvents_")}
    assert prefixed.pop("cloudEvents_time") == headers["occurredAt"]
    assert prefixed == {
        "cloudEvents_specversion": "1.0",
        "cloudEvents_id": "evt-001",
        "cloudEvents_type": "order.placed",
        "cloudEvents_source": "/shop/orders",
        "cloudEvents_subject": "ORDER/42 %",
        "cloudEvents_partitionkey": "ORDER:42 %",
        "cloudEvents_schemaversion": "1",
    }
