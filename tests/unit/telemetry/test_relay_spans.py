"""The spans of a relay: children of the span in which an event was recorded."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, SpanKind, StatusCode
from opentelemetry.trace import TracerProvider as AnyProvider

from pillarbox import (
    ConfigurationError,
    Event,
    FixedDelay,
    Outbox,
    PermanentError,
    RejectedError,
    Relay,
)
from pillarbox.core.message import Message
from pillarbox.core.observations import BatchDelivered, EventDeadLettered, EventDelivered, EventRetried, Observation
from pillarbox.core.transport import Address, messaging_system
from pillarbox.integrations.celery.transport import CeleryAddress
from pillarbox.stores.memory import MemoryStore
from pillarbox.telemetry.opentelemetry import RelayTracing
from pillarbox.transports.handlers.transport import HandlerAddress
from pillarbox.transports.kafka import KafkaAddress, KafkaSource
from pillarbox.transports.memory import MemoryAddress, MemoryTransport
from pillarbox.transports.memory_source import MemorySource
from pillarbox.transports.nats import NatsSource
from pillarbox.transports.nats.plugin import NatsAddress
from pillarbox.transports.rabbitmq import RabbitMQSource, RabbitMQTransport
from pillarbox.transports.rabbitmq.plugin import RabbitMQAddress
from pillarbox.transports.redis import RedisSource
from pillarbox.transports.redis.plugin import RedisAddress
from pillarbox.transports.stdout import StdoutAddress
from pillarbox.transports.webhook.plugin import WebhookAddress
from tests.unit.relay.messages import message
from tests.unit.telemetry.examples import EXAMPLES

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
TRACED = message(trace_id=PARENT, event_id="e1", attempts=1)


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def tracing(exporter: InMemorySpanExporter) -> RelayTracing:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return RelayTracing(provider)


def delivered(sent: Message) -> EventDelivered:
    return EventDelivered(relay="r", message=sent, destination="orders", seconds=0.25)


def test_a_delivery_is_a_span_in_the_trace_of_its_event(tracing: RelayTracing, exporter: InMemorySpanExporter) -> None:
    tracing(delivered(TRACED))
    [span] = exporter.get_finished_spans()
    assert (span.name, span.kind, span.status.status_code) == ("send orders", SpanKind.CLIENT, StatusCode.UNSET)
    assert span.context is not None
    assert span.parent is not None
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == SPAN
    assert span.attributes is not None
    assert span.attributes["messaging.message.id"] == "e1"
    assert span.attributes["messaging.destination.name"] == "orders"
    assert span.attributes["pillarbox.attempt"] == 2


def test_each_delivery_of_a_batch_with_a_trace_is_a_span(tracing: RelayTracing, exporter: InMemorySpanExporter) -> None:
    messages = (TRACED, message(event_id="e2"), message(event_id="e3", trace_id=PARENT))
    tracing.delivered(BatchDelivered(relay="r", destination="orders", messages=messages, seconds=0.25))
    spans = exporter.get_finished_spans()
    assert [(span.attributes or {})["messaging.message.id"] for span in spans] == ["e1", "e3"]
    assert [(span.name, span.status.status_code) for span in spans] == [("send orders", StatusCode.UNSET)] * 2


@pytest.mark.parametrize("provider", [ProxyTracerProvider(), NoOpTracerProvider()], ids=lambda one: type(one).__name__)
def test_without_a_recorder_no_delivery_is_read(provider: AnyProvider) -> None:
    untouched: Any = object()
    batch = BatchDelivered(relay="r", destination="orders", messages=(untouched,), seconds=0.25)
    RelayTracing(provider).delivered(batch)


def test_a_send_has_the_attributes_of_messaging(tracing: RelayTracing, exporter: InMemorySpanExporter) -> None:
    sent = TRACED._replace(correlation_id="c1", headers_json='{"tracestate": "shop=7"}')
    address = RabbitMQTransport.to(exchange="shop", routing_key="{event_type}")
    tracing(EventDelivered(relay="r", message=sent, destination="orders", seconds=0.25, address=address))
    [span] = exporter.get_finished_spans()
    assert span.attributes == {
        "messaging.system": "rabbitmq",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "shop:order.placed",
        "messaging.message.id": "e1",
        "messaging.message.conversation_id": "c1",
        "pillarbox.destination": "orders",
        "pillarbox.event_type": "order.placed",
        "pillarbox.attempt": 2,
    }
    assert [f"{link.context.span_id:016x}" for link in span.links] == [SPAN]
    assert span.context is not None
    assert span.context.trace_state.to_header() == "shop=7"


def test_an_address_without_a_name_is_named_by_its_destination(
    tracing: RelayTracing, exporter: InMemorySpanExporter
) -> None:
    unnamed = RabbitMQTransport.to(exchange="shop", routing_key="{aggregate_id}")
    reported: dict[str, Any] = {"relay": "r", "destination": "orders", "seconds": 0.1}
    tracing(EventDelivered(**reported, message=TRACED, address=MemoryAddress(name="m")))
    tracing(EventDelivered(**reported, message=TRACED._replace(aggregate_id=None), address=unnamed))
    spans = [span.attributes or {} for span in exporter.get_finished_spans()]
    assert [span["messaging.destination.name"] for span in spans] == ["orders", "orders"]
    assert [span["messaging.system"] for span in spans] == ["memory", "rabbitmq"]


def test_a_batch_is_one_span_with_links_to_its_events(exporter: InMemorySpanExporter) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    unsampled = message(event_id="e3", trace_id=f"00-{TRACE}-{SPAN}-00")
    other = message(event_id="e4", trace_id=PARENT.replace(SPAN, "2" * 16))
    messages = (TRACED, message(event_id="e2"), unsampled, other)
    address = RabbitMQTransport.to(routing_key="orders")
    tracing = RelayTracing(provider, spans_per="batch")
    tracing.delivered(BatchDelivered(relay="r", destination="orders", messages=messages, seconds=0.25, address=address))
    [span] = exporter.get_finished_spans()
    assert (span.name, span.kind, span.parent) == ("send orders", SpanKind.CLIENT, None)
    assert [f"{link.context.span_id:016x}" for link in span.links] == [SPAN, "2" * 16]
    assert span.attributes == {
        "messaging.system": "rabbitmq",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "orders",
        "messaging.batch.message_count": 4,
        "pillarbox.destination": "orders",
    }


def test_a_batch_without_a_sampled_trace_has_no_span(exporter: InMemorySpanExporter) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    messages = (message(event_id="e2"), message(event_id="e3", trace_id=f"00-{TRACE}-{SPAN}-00"))
    RelayTracing(provider, spans_per="batch").delivered(
        BatchDelivered(relay="r", destination="orders", messages=messages, seconds=0.25)
    )
    assert exporter.get_finished_spans() == ()


def test_another_unit_of_spans_is_refused() -> None:
    wrong: Any = "event"
    with pytest.raises(ConfigurationError, match="spans_per"):
        RelayTracing(spans_per=wrong)


SYSTEMS: dict[type, str] = {
    RabbitMQAddress: "rabbitmq",
    RabbitMQSource: "rabbitmq",
    KafkaAddress: "kafka",
    KafkaSource: "kafka",
    NatsAddress: "nats",
    NatsSource: "nats",
    RedisAddress: "redis",
    RedisSource: "redis",
    MemoryAddress: "memory",
    MemorySource: "memory",
    WebhookAddress: "http",
    HandlerAddress: "pillarbox",
    StdoutAddress: "stdout",
    CeleryAddress: "rabbitmq",
}


def test_every_address_and_source_has_a_messaging_system() -> None:
    assert {kind: messaging_system(kind) for kind in SYSTEMS} == SYSTEMS


def test_the_list_of_messaging_systems_has_every_address() -> None:
    shipped = {one.__qualname__ for one in Address.__subclasses__() if one.__module__.startswith("pillarbox.")}
    assert shipped <= {kind.__qualname__ for kind in SYSTEMS}


async def test_a_relay_tells_the_address_of_every_send() -> None:
    store, transport = MemoryStore(), MemoryTransport()
    transport.fail_when(lambda out: out.message.event_type == "bad", PermanentError("no"))
    transport.fail_when(lambda out: out.message.event_type == "slow", RejectedError("busy"))
    seen: list[Any] = []
    with store.transaction() as transaction:
        Outbox().record(transaction, *(Event(kind, {}) for kind in ("good", "bad", "slow")))
    retry = FixedDelay(delay="1h", max_attempts=3)
    await Relay(store=store, transports={"out": transport}, observers=[seen.append], retry=retry).run_until_empty()
    sends = [one for one in seen if isinstance(one, (EventDelivered, EventRetried, EventDeadLettered))]
    assert sorted((type(one).__name__, one.message.event_type) for one in sends) == [
        ("EventDeadLettered", "bad"),
        ("EventDelivered", "good"),
        ("EventRetried", "slow"),
    ]
    assert {type(one.address) for one in sends} == {MemoryAddress}


def test_a_span_is_as_long_as_the_send(tracing: RelayTracing, exporter: InMemorySpanExporter) -> None:
    tracing(delivered(TRACED))
    [span] = exporter.get_finished_spans()
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time == 250_000_000


def failures(seconds: float) -> list[Observation]:
    error = "RejectedError: no"
    reported: dict[str, Any] = {"relay": "r", "message": TRACED, "destination": "orders", "error": error, "attempt": 1}
    return [
        EventRetried(**reported, delay=1, counted=True, seconds=seconds),
        EventDeadLettered(**reported, blocks=False, seconds=seconds),
    ]


@pytest.mark.parametrize("failed", failures(0.1), ids=lambda one: type(one).__name__)
def test_a_failed_send_is_an_error(tracing: RelayTracing, exporter: InMemorySpanExporter, failed: Observation) -> None:
    tracing(failed)
    [span] = exporter.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "RejectedError: no")
    assert (span.attributes or {})["error.type"] == "RejectedError"


@pytest.mark.parametrize("failed", failures(0.0), ids=lambda one: type(one).__name__)
def test_an_event_that_was_not_sent_has_no_span(
    tracing: RelayTracing, exporter: InMemorySpanExporter, failed: Observation
) -> None:
    tracing(failed)
    assert exporter.get_finished_spans() == ()


def test_a_trace_header_of_the_producer_takes_precedence(tracing: RelayTracing, exporter: InMemorySpanExporter) -> None:
    other = PARENT.replace(TRACE, "1" * 32)
    tracing(delivered(message(trace_id=PARENT, headers_json=f'{{"traceparent": "{other}"}}')))
    [span] = exporter.get_finished_spans()
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == "1" * 32


@pytest.mark.parametrize("trace_id", [None, "trace-456", PARENT.replace(TRACE, "0" * 32), PARENT.upper() + "x"])
def test_an_event_without_trace_has_no_span(
    tracing: RelayTracing, exporter: InMemorySpanExporter, trace_id: str | None
) -> None:
    tracing(delivered(message(trace_id=trace_id)))
    assert exporter.get_finished_spans() == ()


def test_an_event_of_an_unsampled_trace_has_no_span(tracing: RelayTracing, exporter: InMemorySpanExporter) -> None:
    tracing(delivered(message(trace_id=f"00-{TRACE}-{SPAN}-00")))
    assert exporter.get_finished_spans() == ()


@pytest.mark.parametrize("observation", EXAMPLES, ids=lambda one: type(one).__name__)
def test_every_observation_is_accepted(tracing: RelayTracing, observation: Observation) -> None:
    tracing(observation)
