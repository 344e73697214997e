"""Verdicts on their way into the store: what stops a line is known to looks only once it is written itself."""

import asyncio
from collections.abc import Sequence

import pytest

from pillarbox import Event, Outbox
from pillarbox.core.clock import SystemClock, system_chance
from pillarbox.core.lane import Epochs, RelayCard, Settled
from pillarbox.core.looks import Ready
from pillarbox.core.observations import Announcer
from pillarbox.core.outcome import DELIVERED, Retry, Verdict
from pillarbox.relay.figures import Figures
from pillarbox.relay.hand import Hand, Item
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.settlement import Settlement
from pillarbox.relay.stops import Stops
from pillarbox.stores.memory import MemoryStore


async def test_a_message_delivered_before_does_not_lift_the_stop_of_one_that_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore(lanes=1)
    await store.lanes.join(RelayCard(id="r"), lease=60)
    ownership = Ownership(SystemClock(), margin=20, count=1)
    ownership.took(await store.lanes.take("r", most=1))
    with store.transaction() as transaction:
        Outbox().record(transaction, *(Event("e", {}, event_id=name, key="k") for name in ("first", "second", "third")))
    first, second, third = await store.messages.read(Ready(lanes=[0]))
    writes: asyncio.Queue[asyncio.Event] = asyncio.Queue()
    settle = store.writes.settle

    async def settle_when_allowed(epochs: Epochs, verdicts: Sequence[Verdict]) -> Settled:
        allowed = asyncio.Event()
        writes.put_nowait(allowed)
        await allowed.wait()
        return await settle(epochs, verdicts)

    monkeypatch.setattr(store.writes, "settle", settle_when_allowed)
    stops, hand = Stops(), Hand()
    sent = [Item(message, "d", waited=False, since=0) for message in (first, second)]
    for item in sent:
        hand.add(item)
    settlement = Settlement(
        relay="r",
        store=store,
        hand=hand,
        stops=stops,
        ownership=ownership,
        figures=Figures(),
        announce=Announcer(),
        clock=SystemClock(),
        chance=system_chance(),
        batch=10,
    )
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
