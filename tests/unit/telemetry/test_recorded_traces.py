"""An event carries the trace in which it was recorded; its handler runs in a span of that trace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import Span, SpanKind, StatusCode, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pillarbox import Consumer, Event, Handlers, Outbox, Relay
from pillarbox.core.source import Incoming
from pillarbox.core.transport import messaging_system
from pillarbox.inbox import ConsumedEvent
from pillarbox.inbox.consumed_event import read
from pillarbox.stores.memory import MemoryStore
from pillarbox.telemetry.opentelemetry import ConsumerTracing
from pillarbox.transports.rabbitmq import RabbitMQSource

OWN = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def traceparent(span: Span) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


async def recorded(store: MemoryStore, event: Event) -> str | None:
    with store.transaction() as transaction:
        Outbox().record(transaction, event)
    [found] = (await store.admin.events.show(event.event_id)).events
    return found.trace_id


async def test_an_event_recorded_within_a_span_carries_it(store: MemoryStore, provider: TracerProvider) -> None:
    with provider.get_tracer("test").start_as_current_span("request") as span:
        assert await recorded(store, Event("order.placed", {})) == traceparent(span)


async def test_without_a_span_there_is_no_trace(store: MemoryStore) -> None:
    assert await recorded(store, Event("order.placed", {})) is None


@pytest.mark.parametrize(
    "event", [Event("order.placed", {}, trace_id="trace-456"), Event("order.placed", {}, trace_id=OWN)]
)
async def test_a_trace_set_on_the_event_is_kept(store: MemoryStore, provider: TracerProvider, event: Event) -> None:
    with provider.get_tracer("test").start_as_current_span("request"):
        assert await recorded(store, event) == event.trace_id


async def test_a_trace_header_set_on_the_event_is_kept(store: MemoryStore, provider: TracerProvider) -> None:
    with provider.get_tracer("test").start_as_current_span("request"):
        assert await recorded(store, Event("order.placed", {}, headers={"traceparent": OWN})) is None


async def test_a_caused_event_is_a_child_of_its_handler_span(store: MemoryStore, provider: TracerProvider) -> None:
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("request") as request:
        cause = Event("order.placed", {}, trace_id=traceparent(request))
        with tracer.start_as_current_span("process order.placed") as handling:
            assert await recorded(store, Event("order.paid", {}).caused_by(cause)) == traceparent(handling)


async def recorded_headers(store: MemoryStore, event: Event) -> Mapping[str, str]:
    await recorded(store, event)
    [found] = (await store.admin.events.show(event.event_id)).events
    return found.headers


def with_state(provider: TracerProvider, state: str) -> AbstractContextManager[Span]:
    """A span whose parent has this tracestate."""
    parent = TraceContextTextMapPropagator().extract({"traceparent": OWN, "tracestate": state})
    return provider.get_tracer("test").start_as_current_span("request", context=parent)


async def test_an_event_carries_the_tracestate_of_its_span(store: MemoryStore, provider: TracerProvider) -> None:
    with with_state(provider, "shop=7,other=1"):
        headers = await recorded_headers(store, Event("order.placed", {}, headers={"tenant": "acme"}))
    assert headers == {"tenant": "acme", "tracestate": "shop=7,other=1"}


async def test_the_tracestate_of_the_span_replaces_a_header_of_that_name(
    store: MemoryStore, provider: TracerProvider
) -> None:
    with with_state(provider, "shop=7"):
        headers = await recorded_headers(store, Event("order.placed", {}, headers={"tracestate": "old=1"}))
    assert headers == {"tracestate": "shop=7"}


@pytest.mark.parametrize(
    "event",
    [
        Event("order.placed", {}, headers={"traceparent": OWN, "tracestate": "mine=1"}),
        Event("order.placed", {}, trace_id=OWN.replace("1" * 32, "3" * 32), headers={"tracestate": "mine=1"}),
        Event("order.placed", {}, trace_id="trace-456"),
    ],
    ids=["header", "other trace", "no traceparent"],
)
async def test_headers_of_an_event_with_its_own_trace_are_kept(
    store: MemoryStore, provider: TracerProvider, event: Event
) -> None:
    with with_state(provider, "shop=7"):
        assert await recorded_headers(store, event) == event.headers


@pytest.fixture
def application(monkeypatch: pytest.MonkeyPatch, provider: TracerProvider) -> TracerProvider:
    """The provider that the application has set for its process."""
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", lambda: provider)
    return provider


async def test_recording_is_a_create_span_that_the_event_carries(
    store: MemoryStore, application: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    event = Event("order.placed", {}, event_id="e1", destination="billing", correlation_id="c1")
    with with_state(application, "shop=7"):
        carried = await recorded(store, event)
    create, request = exporter.get_finished_spans()
    assert (create.name, create.kind, create.status.status_code) == (
        "create order.placed",
        SpanKind.PRODUCER,
        StatusCode.UNSET,
    )
    assert create.parent == request.context
    assert create.context is not None
    assert carried == f"00-{create.context.trace_id:032x}-{create.context.span_id:016x}-01"
    assert create.attributes == {
        "messaging.system": "pillarbox",
        "messaging.operation.name": "create",
        "messaging.operation.type": "create",
        "messaging.message.id": "e1",
        "messaging.destination.name": "billing",
        "messaging.message.conversation_id": "c1",
        "pillarbox.event_type": "order.placed",
    }


async def test_each_event_of_a_call_has_its_own_create_span(
    store: MemoryStore, application: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    with application.get_tracer("test").start_as_current_span("request"), store.transaction() as transaction:
        Outbox().record(transaction, Event("a", {}, event_id="e1"), Event("b", {}, event_id="e2"))
    *created, _ = exporter.get_finished_spans()
    assert [(span.name, (span.attributes or {})["messaging.message.id"]) for span in created] == [
        ("create a", "e1"),
        ("create b", "e2"),
    ]


async def test_an_unsampled_trace_is_carried_without_a_create_span(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, exporter: InMemorySpanExporter
) -> None:
    unsampled = TracerProvider(sampler=ALWAYS_OFF)
    unsampled.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", lambda: unsampled)
    with unsampled.get_tracer("test").start_as_current_span("request") as span:
        assert await recorded(store, Event("order.placed", {})) == traceparent(span)
    assert not span.get_span_context().trace_flags.sampled
    assert exporter.get_finished_spans() == ()


async def test_a_provider_that_raises_does_not_fail_the_transaction(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, provider: TracerProvider
) -> None:
    class Broken(SpanProcessor):
        def on_start(self, span: object, parent_context: object = None) -> None:
            raise ValueError("the exporter is at fault")

    broken = TracerProvider()
    broken.add_span_processor(Broken())
    monkeypatch.setattr("opentelemetry.trace.get_tracer_provider", lambda: broken)
    with provider.get_tracer("test").start_as_current_span("request") as span:
        assert await recorded(store, Event("order.placed", {})) == traceparent(span)


def consuming(
    store: MemoryStore, provider: TracerProvider, kind: str, work: Callable[[ConsumedEvent], None]
) -> Handlers:
    consumer = Consumer(name="billing", transaction=store.transaction, around=ConsumerTracing(provider))

    async def awaited(transaction: Any, event: ConsumedEvent) -> None:
        work(event)

    def plain(transaction: Any, event: ConsumedEvent) -> None:
        work(event)

    consumer.on("order.*")(awaited if kind == "awaited" else plain)
    handlers = Handlers()
    handlers.add(consumer)
    return handlers


@pytest.mark.parametrize("kind", ["awaited", "plain"])
async def test_a_handler_runs_in_a_span_of_the_trace(
    store: MemoryStore, provider: TracerProvider, exporter: InMemorySpanExporter, kind: str
) -> None:
    seen: list[Span] = []
    handlers = consuming(store, provider, kind, lambda event: seen.append(get_current_span()))
    with provider.get_tracer("test").start_as_current_span("request") as request:
        await recorded(store, Event("order.placed", {}))
    await Relay(store=store, transports={"handlers": handlers}).run_until_empty()
    *_, span = exporter.get_finished_spans()
    assert span.name == "process order.placed"
    assert span.parent is not None
    assert span.parent.span_id == request.get_span_context().span_id
    assert [one.get_span_context() for one in seen] == [span.context]


async def test_a_failure_is_recorded_on_the_span(
    store: MemoryStore, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    def fail(event: ConsumedEvent) -> None:
        raise ValueError("out of paper")

    with provider.get_tracer("test").start_as_current_span("request"):
        await recorded(store, Event("order.placed", {}))
    await Relay(store=store, transports={"handlers": consuming(store, provider, "plain", fail)}).run_until_empty()
    *_, span = exporter.get_finished_spans()
    assert span.status.status_code == StatusCode.ERROR
    assert [event.name for event in span.events] == ["exception"]
    assert (span.attributes or {})["error.type"] == "ValueError"


async def test_the_span_of_a_handler_has_the_attributes_of_messaging(
    store: MemoryStore, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    with with_state(provider, "shop=7") as request:
        await recorded(store, Event("order.placed", {}, event_id="e1", correlation_id="c1"))
    handlers = consuming(store, provider, "awaited", lambda event: None)
    await Relay(store=store, transports={"handlers": handlers}).run_until_empty()
    *_, span = exporter.get_finished_spans()
    assert span.kind == SpanKind.CONSUMER
    assert [link.context.span_id for link in span.links] == [request.get_span_context().span_id]
    assert span.context is not None
    assert span.context.trace_state.to_header() == "shop=7"
    assert span.attributes == {
        "messaging.system": "pillarbox",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.message.id": "e1",
        "messaging.destination.name": "billing",
        "messaging.message.conversation_id": "c1",
        "pillarbox.event_type": "order.placed",
    }


async def test_a_message_of_a_broker_says_where_it_was_received(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    incoming = Incoming(event_id="e1", event_type="order.placed", body=b"", destination="orders")
    with ConsumerTracing(provider)(read(incoming, messaging_system=messaging_system(RabbitMQSource))):
        pass
    [span] = exporter.get_finished_spans()
    assert span.attributes is not None
    assert (span.attributes["messaging.system"], span.attributes["messaging.destination.name"]) == (
        "rabbitmq",
        "orders",
    )
    assert not span.links


async def test_an_invalid_tracestate_leaves_the_trace_as_it_is(
    provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    headers = {"traceparent": OWN, "tracestate": "not one"}
    incoming = Incoming(event_id="e1", event_type="order.placed", body=b"", headers=headers)
    with ConsumerTracing(provider)(read(incoming)):
        pass
    [span] = exporter.get_finished_spans()
    assert span.context is not None
    assert (f"{span.context.trace_id:032x}", span.context.trace_state.to_header()) == ("1" * 32, "")


async def test_an_event_without_trace_starts_one(
    store: MemoryStore, provider: TracerProvider, exporter: InMemorySpanExporter
) -> None:
    await recorded(store, Event("order.placed", {}))
    handlers = consuming(store, provider, "awaited", lambda event: None)
    await Relay(store=store, transports={"handlers": handlers}).run_until_empty()
    [span] = exporter.get_finished_spans()
    assert span.parent is None


def test_a_custom_context_manager_of_a_consumer_is_kept(store: MemoryStore, provider: TracerProvider) -> None:
    mine = ConsumerTracing(provider)
    consumer = Consumer(name="billing", transaction=store.transaction, around=mine)
    consumer.surround(ConsumerTracing())
    assert consumer._dispatcher.around is mine


RECORD = """
import sys
from pillarbox import Consumer, Event, Outbox, Relay
from pillarbox.ops.telemetry import relay_tracing
from pillarbox.stores.memory import MemoryStore

store = MemoryStore()
with store.transaction() as transaction:
    Outbox().record(transaction, Event("order.placed", {}))
assert relay_tracing() == []
print(*sorted({"opentelemetry", "prometheus_client", "starlette", "uvicorn"} & set(sys.modules)))
"""


def test_without_tracing_no_tracing_library_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", RECORD], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
