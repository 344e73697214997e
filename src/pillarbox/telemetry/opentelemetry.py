"""One trace from the request to the handler: an event carries the W3C trace context in which it was recorded, and the
spans of the relay and of the consumer are children of that creation context, and linked to it.

    request ── create order.placed ──┬── send orders          the relay, another process
                                     └── process order.placed the consumer, a third one
                                            └── spans of the handler

The attributes are those of OpenTelemetry's semantic conventions for messaging. Invariants: an event that was recorded
outside of a trace creates no span on the relay; this module needs only the API of OpenTelemetry, and the application
configures the export. `pillarbox.record.tracing` creates the span `create`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, Protocol, get_args

from pillarbox.core.errors import ConfigurationError, PermanentError
from pillarbox.core.event import TRACEPARENT, TRACESTATE, is_traceparent, is_tracestate
from pillarbox.core.message import Message
from pillarbox.core.observations import (
    BatchDelivered,
    BatchObserver,
    EventDeadLettered,
    EventDelivered,
    EventRetried,
    Observation,
)
from pillarbox.core.transport import Address, messaging_system

try:
    from opentelemetry.context import Context
    from opentelemetry.trace import (
        Link,
        NoOpTracerProvider,
        ProxyTracerProvider,
        Span,
        SpanContext,
        SpanKind,
        Status,
        StatusCode,
        TracerProvider,
        get_current_span,
        get_tracer,
        get_tracer_provider,
    )
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('tracing needs opentelemetry-api: pip install "pillarbox[tracing]"') from missing

SpansPer = Literal["message", "batch"]

_propagator = TraceContextTextMapPropagator()
_NANOSECONDS = 1_000_000_000
MAX_LINKS = 128
"""Links of a span of a batch: the default limit of the SDK, which drops the first ones beyond it."""


class Traced(Protocol):
    """An event as a consumer or a handler sees it. `messaging_system` and `destination` are read if it has them."""

    @property
    def event_id(self) -> str: ...
    @property
    def event_type(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class RelayTracing(BatchObserver):
    """An observer for `Relay(observers=[…])`: spans for the sends of events that were recorded within a trace.

    A span starts when the batch is sent and ends with the answer of the transport.
    """

    def __init__(self, provider: TracerProvider | None = None, *, spans_per: SpansPer = "message") -> None:
        """
        provider: default: the application's, `opentelemetry.trace.get_tracer_provider()`.
        spans_per: "message": a span in the trace of each event; "batch": for the deliveries of a batch one span in a
            trace of its own, with links to the events, which costs the relay less. Failed sends have spans of their
            own. Raises ConfigurationError for another value.
        """
        if spans_per not in get_args(SpansPer):
            raise ConfigurationError(f'RelayTracing: spans_per is {spans_per!r}; use "message" or "batch"')
        self._provider = provider
        self._per_batch = spans_per == "batch"
        self._tracer = get_tracer("pillarbox.relay", tracer_provider=provider)

    def __call__(self, observation: Observation) -> None:
        """Create a span if the observation is about a send."""
        match observation:
            case EventDelivered(message=message, seconds=seconds):
                self._message_span(message, observation.destination, observation.address, seconds)
            case EventRetried(message=message, seconds=seconds) | EventDeadLettered(message=message, seconds=seconds):
                if seconds:
                    destination, address = observation.destination, observation.address
                    self._message_span(message, destination, address, seconds, observation.error)
            case _:
                pass

    def delivered(self, batch: BatchDelivered) -> None:
        """Create the spans of a batch; skips the events if no provider exports spans."""
        provider = self._provider or get_tracer_provider()
        if isinstance(provider, ProxyTracerProvider | NoOpTracerProvider):
            return
        if self._per_batch and len(batch.messages) > 1:
            self._batch_span(batch)
            return
        for message in batch.messages:
            self._message_span(message, batch.destination, batch.address, batch.seconds)

    def _message_span(
        self, message: Message, destination: str, address: Address | None, seconds: float, error: str | None = None
    ) -> None:
        context = _creation_context(message)
        if context is None:
            return
        attributes: dict[str, str | int] = {
            **_send_attributes([message], destination, address),
            "messaging.message.id": message.event_id,
            "pillarbox.event_type": message.event_type,
            "pillarbox.attempt": message.failures + 1,
        }
        if message.correlation_id:
            attributes["messaging.message.conversation_id"] = message.correlation_id
        if error is not None:
            attributes["error.type"] = _error_type(error)
        end = time.time_ns()
        span = self._tracer.start_span(
            f"send {destination}",
            context=context,
            kind=SpanKind.CLIENT,  # the producer is the span in which the event was recorded
            start_time=end - int(seconds * _NANOSECONDS),
            attributes=attributes,
            links=[Link(_span_context(context))],
        )
        if error is not None:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(end)

    def _batch_span(self, batch: BatchDelivered) -> None:
        created = [context for one in batch.messages if (context := _creation_context(one)) is not None]
        spans = [_span_context(context) for context in created]
        links = [Link(span) for span in spans if span.trace_flags.sampled]
        if not links:
            return
        end = time.time_ns()
        span = self._tracer.start_span(
            f"send {batch.destination}",
            context=Context(),
            kind=SpanKind.CLIENT,
            start_time=end - int(batch.seconds * _NANOSECONDS),
            attributes={
                **_send_attributes(batch.messages, batch.destination, batch.address),
                "messaging.batch.message_count": len(batch.messages),
            },
            links=links[:MAX_LINKS],
        )
        span.end(end)


class ConsumerTracing:
    """For `Consumer(around=ConsumerTracing())`: the span of handling an event and of its transaction.

    Other handlers enter the span themselves: `with tracing(event): …`.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        """provider: default: the application's, `opentelemetry.trace.get_tracer_provider()`."""
        self._tracer = get_tracer("pillarbox.consumer", tracer_provider=provider)

    def __call__(self, event: Traced) -> AbstractContextManager[object]:
        """Open the span of `event` as the current span; it records an exception that leaves the block."""
        return self._span(event)

    @contextmanager
    def _span(self, event: Traced) -> Iterator[Span]:
        context = _context(event.headers.get(TRACEPARENT), event.headers.get(TRACESTATE))
        attributes = {
            "messaging.system": getattr(event, "messaging_system", "") or "pillarbox",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.message.id": event.event_id,
            "pillarbox.event_type": event.event_type,
        }
        if destination := getattr(event, "destination", ""):
            attributes["messaging.destination.name"] = destination
        if conversation := getattr(event, "correlation_id", None):
            attributes["messaging.message.conversation_id"] = conversation
        with self._tracer.start_as_current_span(
            f"process {event.event_type}",
            context=context,
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=None if context is None else [Link(_span_context(context))],
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_attribute("error.type", type(error).__qualname__)
                raise


def _send_attributes(messages: Sequence[Message], destination: str, address: Address | None) -> dict[str, str]:
    name = destination
    if address is not None:
        try:
            names = {address.destination_name(message) for message in messages}
        except PermanentError:  # the message has no name there, and was not sent
            names = set[str]()
        if len(names) == 1:
            name = names.pop() or destination
    return {
        "messaging.system": "pillarbox" if address is None else messaging_system(type(address)),
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": name,
        "pillarbox.destination": destination,
    }


def _creation_context(message: Message) -> Context | None:
    """The trace context as the transport sends it: a header of the producer takes precedence; None: there is none."""
    headers: Mapping[str, object] = message.headers if message.headers_json != "{}" else {}
    for traceparent in (headers.get(TRACEPARENT), message.trace_id):
        if isinstance(traceparent, str) and is_traceparent(traceparent):
            return _context(traceparent, headers.get(TRACESTATE))
    return None


def _context(traceparent: str | None, tracestate: object) -> Context | None:
    """Parse a trace context; None if the traceparent is missing or malformed. A malformed tracestate is left out."""
    if traceparent is None:
        return None
    carrier = {TRACEPARENT: traceparent}
    if isinstance(tracestate, str) and is_tracestate(tracestate):
        carrier[TRACESTATE] = tracestate
    return _propagator.extract(carrier, Context()) or None


def _span_context(context: Context) -> SpanContext:
    return get_current_span(context).get_span_context()


def _error_type(error: str) -> str:
    """The class of a send error, with which its text begins."""
    name = error.partition(": ")[0]
    return name if name.isidentifier() else "_OTHER"
