"""Decisions on their way into the store: a fetch knows what stops a queue only once that is written itself, and what
was decided before a lane was lost is void."""

import asyncio
from collections.abc import Sequence

import pytest

from pillarbox import Event, Outbox
from pillarbox.core.fetch import Ready
from pillarbox.core.lane import Epochs, RelayRegistration, Settled
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Outcome, Retry
from pillarbox.relay.in_flight import Item
from pillarbox.relay.relay import RelayContext
from pillarbox.relay.settle import Settlement
from pillarbox.stores.memory import MemoryStore
from tests.unit.relay.contexts import relay_context


async def store_of_one_lane(*names: str) -> tuple[MemoryStore, RelayContext]:
    """A store with events of one key, and the owner of its lane."""
    store = MemoryStore(lanes=1)
    context = relay_context(store)
    await store.lanes.join(RelayRegistration(id=context.relay), lease=60)
    context.ownership.acquired(await store.lanes.acquire(context.relay, limit=1))
    with store.transaction() as transaction:
        Outbox().record(transaction, *(Event("e", {}, event_id=name, key="k") for name in names))
    return store, context


async def test_an_earlier_delivery_does_not_lift_the_barrier_of_a_retried_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, context = await store_of_one_lane("first", "second", "third")
    first, second, third = await store.messages.fetch(Ready(lanes=[0]))
    writes: asyncio.Queue[asyncio.Event] = asyncio.Queue()
    settle = store.writes.settle

    async def settle_when_allowed(epochs: Epochs, decisions: Sequence[Decision]) -> Settled:
        allowed = asyncio.Event()
        writes.put_nowait(allowed)
        await allowed.wait()
        return await settle(epochs, decisions)

    monkeypatch.setattr(store.writes, "settle", settle_when_allowed)
    barrier, in_flight = context.barrier, context.in_flight
    sent = [Item(message, "d", waited=False, since=0) for message in (first, second)]
    for item in sent:
        in_flight.add(item)
    settlement = Settlement(context)
    settlement.add(sent[0], DELIVERED)
    writing = asyncio.create_task(settlement.flush())
    write_of_first = await writes.get()
    settlement.add(sent[1], Retry(delay=60, error="not now"))
    write_of_first.set()
    write_of_second = await writes.get()
    assert barrier.holds_back(third, "d", barrier.fetches + 1)
    write_of_second.set()
    await writing
    assert not barrier.holds_back(third, "d", barrier.fetches + 1)


@pytest.mark.parametrize("outcome", [DELIVERED, Retry(delay=60, error="late"), Dead(error="late"), None])
async def test_a_decision_from_before_a_lane_was_lost_is_discarded(outcome: Outcome | None) -> None:
    store, context = await store_of_one_lane("first", "second")
    before = await store.messages.fetch(Ready(lanes=[0]))
    barrier, in_flight = context.barrier, context.in_flight
    stale, current = (Item(before[0], "", waited=False, since=0) for _ in range(2))
    in_flight.add(stale)
    settlement = Settlement(context)
    if outcome is None:
        settlement.defer(stale, "late", [])
    else:
        settlement.add(stale, outcome)
    in_flight.drop_lanes({0})
    await store.lanes.release(context.relay)
    await store.lanes.join(RelayRegistration(id=context.relay), lease=60)
    context.ownership.acquired(await store.lanes.acquire(context.relay, limit=1))
    in_flight.add(current)
    await settlement.flush()
    assert await store.messages.fetch(Ready(lanes=[0])) == before
    assert in_flight.holds(current)
    assert not barrier.holds_back(before[1], "", barrier.fetches + 1)
