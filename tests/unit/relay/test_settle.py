"""Verdicts on their way into the store: what stops a line is known to looks only once it is written itself, and what
was decided before a lane was lost is void."""

import asyncio
from collections.abc import Sequence

import pytest

from pillarbox import Event, Outbox
from pillarbox.core.clock import SystemClock, system_chance
from pillarbox.core.fetch import Ready
from pillarbox.core.lane import Epochs, RelayCard, Settled
from pillarbox.core.observations import Announcer
from pillarbox.core.outcome import DELIVERED, Dead, Outcome, Retry, Verdict
from pillarbox.relay.admission import Stops
from pillarbox.relay.in_flight import InFlight, Item
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.retention import Figures
from pillarbox.relay.settle import Settlement
from pillarbox.stores.memory import MemoryStore


async def store_of_one_lane(*names: str) -> tuple[MemoryStore, Ownership]:
    """A store with events of one key, and the relay that owns its lane."""
    store = MemoryStore(lanes=1)
    await store.lanes.join(RelayCard(id="r"), lease=60)
    ownership = Ownership(SystemClock(), margin=20, count=1)
    ownership.took(await store.lanes.take("r", most=1))
    with store.transaction() as transaction:
        Outbox().record(transaction, *(Event("e", {}, event_id=name, key="k") for name in names))
    return store, ownership


def settlement_of(store: MemoryStore, ownership: Ownership, in_flight: InFlight, stops: Stops) -> Settlement:
    return Settlement(
        relay="r",
        store=store,
        in_flight=in_flight,
        stops=stops,
        ownership=ownership,
        figures=Figures(),
        announce=Announcer(),
        clock=SystemClock(),
        chance=system_chance(),
        batch=10,
    )


async def test_a_message_delivered_before_does_not_lift_the_stop_of_one_that_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, ownership = await store_of_one_lane("first", "second", "third")
    first, second, third = await store.messages.read(Ready(lanes=[0]))
    writes: asyncio.Queue[asyncio.Event] = asyncio.Queue()
    settle = store.writes.settle

    async def settle_when_allowed(epochs: Epochs, verdicts: Sequence[Verdict]) -> Settled:
        allowed = asyncio.Event()
        writes.put_nowait(allowed)
        await allowed.wait()
        return await settle(epochs, verdicts)

    monkeypatch.setattr(store.writes, "settle", settle_when_allowed)
    stops, in_flight = Stops(), InFlight()
    sent = [Item(message, "d", waited=False, since=0) for message in (first, second)]
    for item in sent:
        in_flight.add(item)
    settlement = settlement_of(store, ownership, in_flight, stops)
    settlement.add(sent[0], DELIVERED)
    writing = asyncio.create_task(settlement.flush())
    write_of_first = await writes.get()
    settlement.add(sent[1], Retry(delay=60, error="not now"))
    write_of_first.set()
    write_of_second = await writes.get()
    assert stops.hold_back(third, "d", stops.looks + 1)
    write_of_second.set()
    await writing
    assert not stops.hold_back(third, "d", stops.looks + 1)


@pytest.mark.parametrize("outcome", [DELIVERED, Retry(delay=60, error="late"), Dead(error="late"), None])
async def test_a_verdict_from_before_its_lane_was_lost_and_taken_back_is_void(outcome: Outcome | None) -> None:
    store, ownership = await store_of_one_lane("first", "second")
    before = await store.messages.read(Ready(lanes=[0]))
    stops, in_flight = Stops(), InFlight()
    stale, current = (Item(before[0], "", waited=False, since=0) for _ in range(2))
    in_flight.add(stale)
    settlement = settlement_of(store, ownership, in_flight, stops)
    if outcome is None:
        settlement.note(stale, "late", [])
    else:
        settlement.add(stale, outcome)
    in_flight.drop_lanes({0})
    await store.lanes.release("r")
    await store.lanes.join(RelayCard(id="r"), lease=60)
    ownership.took(await store.lanes.take("r", most=1))
    in_flight.add(current)
    await settlement.flush()
    assert await store.messages.read(Ready(lanes=[0])) == before
    assert in_flight.holds(current)
    assert not stops.hold_back(before[1], "", stops.looks + 1)
