"""One interface for two ways to publish an event: through the outbox, or directly through a transport.

    OutboxEventBus   records it; a relay sends it. Nothing is lost, and it is atomic with the caller's transaction.
    DirectEventBus   sends it now and waits for the result. Nothing is stored: the caller retries failures.

Code that publishes depends on `EventBus` alone, and so does a decorator, such as one that retries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from pillarbox.connections.accepted import AsyncRecordable
from pillarbox.core.errors import RecordError, RejectedError
from pillarbox.core.event import Event
from pillarbox.core.message import Message
from pillarbox.core.payload import Size, payload_limit
from pillarbox.core.transport import Address, Outgoing, Transport
from pillarbox.record.options import RecordOptions
from pillarbox.record.outbox import Outbox
from pillarbox.record.registry import EventTypes
from pillarbox.record.rows import row_of
from pillarbox.relay.envelope import compose, headers_for
from pillarbox.relay.routing import Destination, DestinationEndpoint, Route, Routing


@runtime_checkable
class EventBus(Protocol):
    """Publishes events."""

    async def publish(self, event: Event) -> None:
        """Return once the event is safe: in the outbox, or accepted by its destinations. Raises PillarboxError."""
        ...


class OutboxEventBus:
    """Publishes by recording."""

    def __init__(self, connection: AsyncRecordable, outbox: Outbox | None = None) -> None:
        """
        connection: whatever `Outbox.arecord` takes. With a pool, an AsyncEngine or an async_sessionmaker each event is
            committed in a transaction of its own; with an open transaction the event becomes part of it.
        outbox: default: one on the default tables.
        """
        self._connection = connection
        self._outbox = outbox or Outbox()

    async def publish(self, event: Event) -> None:
        """Record the event. Raises what `Outbox.arecord` raises."""
        await self._outbox.arecord(self._connection, event)


class DirectEventBus:
    """Publishes by sending, with the transports, destinations and routes of a relay. Raises ConfigurationError."""

    def __init__(
        self,
        *,
        transports: Mapping[str, Transport],
        destinations: Mapping[str, Destination | Address] | None = None,
        routes: Sequence[Route] = (),
        registry: EventTypes | None = None,
        max_payload: Size = RecordOptions.max_payload,
    ) -> None:
        """
        transports: by their names; the caller closes them.
        destinations, routes: as for a `Relay`; without both, each event goes to the defaults of its transport.
        registry, max_payload: as for an `Outbox`, so that both buses refuse the same events.
        """
        self._routing = Routing(routes, destinations or {}, transports)
        self._registry = registry
        self._max_payload = payload_limit(max_payload)

    async def publish(self, event: Event) -> None:
        """Send the event to each of its destinations.

        Raises RecordError for an event that cannot be sent, and SendError (UnavailableError, RejectedError) from the
        first destination that did not accept it. The destinations before it have the event then, and get it again if
        the caller publishes it again.
        """
        if event.available_at is not None:
            raise RecordError(
                f"event {event.event_id} has available_at, and this bus stores nothing; publish it through the outbox",
                field="available_at",
            )
        row = row_of(event, registry=self._registry, max_payload=self._max_payload)
        message = row.message(id=0, lane=0, recorded_at=datetime.now(UTC))
        names = self._routing.resolve(message)
        if not names:
            raise RejectedError(f"event {event.event_id} of type {event.event_type!r} has no route; add one")
        for name in names:
            await self._send(message, self._routing.endpoint(name))

    async def _send(self, message: Message, endpoint: DestinationEndpoint) -> None:
        body, content_type = compose(message, endpoint.destination.body, now=message.recorded_at)
        outgoing = Outgoing(
            message=message.to(endpoint.name),
            address=endpoint.destination.address,
            body=body,
            content_type=content_type,
            headers=headers_for(message, endpoint.destination.body, endpoint.destination.address),
        )
        [result] = await endpoint.transport.send([outgoing])
        if result is not None:
            raise result
