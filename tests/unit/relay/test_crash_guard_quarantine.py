"""Attempts that are written before the send: the lane is kept meanwhile; if it is lost, nothing is sent."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pillarbox import Event, Outbox, Relay
from pillarbox.core.fetch import Ready
from pillarbox.core.lane import Epochs, OwnedLane, RelayRegistration, Settled
from pillarbox.core.outcome import Resolved
from pillarbox.relay.guards import CRASHES_TO_QUARANTINE
from pillarbox.relay.in_flight import Item
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.lookup import find_event
from pillarbox.transports.memory import MemoryTransport


@pytest.mark.parametrize("lost", [False, True])
async def test_a_lane_is_not_released_while_an_attempt_is_written(monkeypatch: pytest.MonkeyPatch, lost: bool) -> None:
    store = MemoryStore(lanes=1)
    relay = Relay(store=store, transports={"memory": MemoryTransport()})
    await store.lanes.join(RelayRegistration(id=relay.id), lease=60)
    relay._context.ownership.acquired(await store.lanes.acquire(relay.id, limit=1))
    with store.transaction() as transaction:
        Outbox().record(transaction, Event("e", {}, key="k"))
    [message] = await store.messages.fetch(Ready(lanes=[0]))
    writing, allowed = asyncio.Event(), asyncio.Event()
    note = store.writes.count_attempt

    async def note_when_allowed(epochs: Epochs, messages: Sequence[Resolved], **more: Any) -> Settled:
        writing.set()
        await allowed.wait()
        return await note({0: -1} if lost else epochs, messages, **more)

    monkeypatch.setattr(store.writes, "count_attempt", note_when_allowed)
    item = Item(message, "d", waited=False, since=0)
    context = relay._context
    counting = asyncio.create_task(context.crash_guard.count_before_send(context, context.ownership.epochs, item))
    await writing.wait()
    assert relay._context.in_flight.lanes() == {0}
    allowed.set()
    await counting
    assert relay._context.in_flight.has_sendable("d") is not lost
    assert relay._context.in_flight.lanes() == (set() if lost else {0})


async def test_a_draining_relay_counts_no_attempt_without_a_send() -> None:
    store = MemoryStore(lanes=1)
    relay = Relay(store=store, transports={"memory": MemoryTransport()})
    await store.lanes.join(RelayRegistration(id=relay.id), lease=60)
    relay._context.ownership.acquired(await store.lanes.acquire(relay.id, limit=1))
    relay._context.crash_guard.acquired([OwnedLane(lane=0, epoch=1, crashes=CRASHES_TO_QUARANTINE)])
    with store.transaction() as transaction:
        Outbox().record(transaction, Event("e", {}, event_id="1", key="k"))
    fetching = asyncio.create_task(relay._parts.fetcher.fetch())
    await asyncio.sleep(0)
    assert not relay._parts.fetcher.idle
    relay._context.lifecycle.begin()
    assert await relay._supervisor.drain()
    await fetching
    [row] = await find_event(store, "1")
    assert (row.attempts, len(relay._context.in_flight)) == (0, 0)
