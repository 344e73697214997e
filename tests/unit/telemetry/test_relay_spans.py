"""The spans of a relay: children of the span in which an event was recorded."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider, ProxyTracerProvider, SpanKind, StatusCode
from opentelemetry.trace import TracerProvider as AnyProvider

from pillarbox.core.message import Message
from pillarbox.core.observations import BatchDelivered, EventDeadLettered, EventDelivered, EventRetried, Observation
from pillarbox.telemetry.opentelemetry import RelayTracing
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
    assert (span.name, span.kind, span.status.status_code) == ("send orders", SpanKind.PRODUCER, StatusCode.UNSET)
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


def test_a_span_is_as_long_as_the_send(tracing: RelayTracing, exporter: InMemorySpanExporter) -> None:
    tracing(delivered(TRACED))
    [span] = exporter.get_finished_spans()
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time == 250_000_000


def failures(seconds: float) -> list[Observation]:
    told: dict[str, Any] = {"relay": "r", "message": TRACED, "destination": "orders", "error": "no", "attempt": 1}
    return [
        EventRetried(**told, delay=1, counted=True, seconds=seconds),
        EventDeadLettered(**told, blocks=False, seconds=seconds),
    ]


@pytest.mark.parametrize("failed", failures(0.1), ids=lambda one: type(one).__name__)
def test_a_failed_send_is_an_error(tracing: RelayTracing, exporter: InMemorySpanExporter, failed: Observation) -> None:
    tracing(failed)
    [span] = exporter.get_finished_spans()
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, "no")


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
