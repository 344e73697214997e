"""The direct and the outbox event bus have one interface and behave the same for publishers."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from pillarbox import (
    ConfigurationError,
    Destination,
    DirectEventBus,
    Event,
    EventBus,
    OutboxEventBus,
    RecordError,
    RejectedError,
    Relay,
    Route,
    UnavailableError,
)
from pillarbox.core.transport import Address
from pillarbox.stores.memory import MemoryStore
from pillarbox.transports.memory import MemoryTransport

PLACED = Event(
    "order.placed",
    {"id": 42},
    event_id="evt-1",
    aggregate_type="ORDER",
    aggregate_id="42",
    correlation_id="c-1",
    headers={"tenant": "acme"},
    occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
)
DESTINATIONS: dict[str, Destination | Address] = {
    "orders": Destination(MemoryTransport.to("orders"), body="envelope"),
    "audit": MemoryTransport.to("audit"),
}
ROUTES = [Route(event_type="order.*", to=["orders", "audit"])]


class RetryEventBus:
    """A decorator of an application, which uses only the interface."""

    def __init__(self, inner: EventBus, *, max_attempts: int) -> None:
        self._inner = inner
        self._max_attempts = max_attempts
        self.attempts = 0

    async def publish(self, event: Event) -> None:
        while True:
            self.attempts += 1
            try:
                return await self._inner.publish(event)
            except UnavailableError:
                if self.attempts == self._max_attempts:
                    raise


def direct(transport: MemoryTransport) -> DirectEventBus:
    return DirectEventBus(transports={"memory": transport}, destinations=DESTINATIONS, routes=ROUTES)


async def sent_by_a_relay(store: MemoryStore) -> MemoryTransport:
    transport = MemoryTransport()
    relay = Relay(store=store, transports={"memory": transport}, destinations=DESTINATIONS, routes=ROUTES)
    await relay.run_until_empty()
    return transport


def arrived(transport: MemoryTransport) -> dict[str, tuple[bytes, str, dict[str, str]]]:
    return {
        name: (sent.body, sent.content_type, dict(sent.headers))
        for name in DESTINATIONS
        for sent in transport.delivered(name)
    }


async def test_both_buses_send_the_same_messages_to_the_same_destinations() -> None:
    transport, store = MemoryTransport(), MemoryStore()
    await direct(transport).publish(PLACED)
    with store.transaction() as transaction:
        await OutboxEventBus(transaction).publish(PLACED)
    at_once, by_relay = arrived(transport), arrived(await sent_by_a_relay(store))
    assert at_once == by_relay
    assert json.loads(at_once["orders"][0])["event_id"] == "evt-1"


async def test_an_event_published_in_a_transaction_that_rolls_back_is_never_sent() -> None:
    store = MemoryStore()
    with pytest.raises(ZeroDivisionError), store.transaction() as transaction:
        await OutboxEventBus(transaction).publish(PLACED)
        _ = 1 / 0
    assert arrived(await sent_by_a_relay(store)) == {}


@pytest.mark.parametrize("kind", ["direct", "outbox"])
async def test_a_decorator_works_with_both(kind: str) -> None:
    transport, store = MemoryTransport(), MemoryStore()
    with store.transaction() as transaction:
        inner: EventBus = direct(transport) if kind == "direct" else OutboxEventBus(transaction)
        bus: EventBus = RetryEventBus(inner, max_attempts=3)
        assert isinstance(bus, EventBus)
        await bus.publish(PLACED)
    assert set(arrived(transport if kind == "direct" else await sent_by_a_relay(store))) == {"orders", "audit"}


async def test_a_retrying_decorator_survives_a_short_outage() -> None:
    transport = MemoryTransport()
    transport.fail_next(UnavailableError("away"), times=2)
    bus = RetryEventBus(direct(transport), max_attempts=3)
    await bus.publish(PLACED)
    assert (bus.attempts, set(arrived(transport))) == (3, {"orders", "audit"})


async def test_errors_of_the_destination_are_raised() -> None:
    transport = MemoryTransport()
    transport.outage()
    with pytest.raises(UnavailableError):
        await RetryEventBus(direct(transport), max_attempts=2).publish(PLACED)
    assert transport.deliveries == []


async def test_an_event_without_a_route_is_rejected() -> None:
    with pytest.raises(RejectedError, match=r"evt-1.*has no route"):
        bus = DirectEventBus(transports={"memory": MemoryTransport()}, destinations=DESTINATIONS)
        await bus.publish(PLACED)


async def test_direct_publishing_rejects_delayed_events() -> None:
    later = Event("order.placed", {}, available_at=datetime(2100, 1, 1, tzinfo=UTC))
    with pytest.raises(RecordError) as refused:
        await direct(MemoryTransport()).publish(later)
    assert refused.value.field == "available_at"


async def test_both_buses_reject_a_too_large_payload() -> None:
    bus = DirectEventBus(transports={"memory": MemoryTransport()}, max_payload=10)
    with pytest.raises(RecordError, match="max_payload"):
        await bus.publish(Event("order.placed", {"text": "x" * 20}))


def test_a_route_to_an_unknown_destination_is_an_error_at_the_start() -> None:
    with pytest.raises(ConfigurationError, match="orders"):
        DirectEventBus(transports={"memory": MemoryTransport()}, routes=ROUTES)
