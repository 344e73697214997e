"""An event carries the trace in which it was recorded; its handler runs in a span of that trace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Span, StatusCode, get_current_span

from pillarbox import Consumer, Event, Handlers, Outbox, Relay
from pillarbox.inbox import ConsumedEvent
from pillarbox.stores.memory import MemoryStore
from pillarbox.telemetry.opentelemetry import ConsumerTracing

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
from pillarbox.ops.listeners import relay_tracing
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
