"""A blocked event loop: the heartbeat keeps the lanes for a while and then releases them."""

import asyncio
import threading
from contextlib import aclosing
from typing import Any, Self

import pytest

from pillarbox import Handlers, Outbox, Relay, RelayConfig
from pillarbox.core.errors import RelayFailedError
from pillarbox.core.event import Event
from pillarbox.core.lane import RelayRegistration
from pillarbox.stores.memory import MemoryStore
from pillarbox.testing.lookup import find_event
from pillarbox.transports.handlers import ReceivedEvent

NO_FILE = OSError(24, "Too many open files")


async def test_a_blocked_loop_loses_its_lanes_and_reports_where_it_hangs() -> None:
    store, handlers = MemoryStore(), Handlers()
    reported: list[str] = []
    let_go = threading.Event()

    def stalled(reason: str) -> None:
        reported.append(reason)
        let_go.set()

    @handlers.on("wedge", name="wedge")
    async def wedge(event: ReceivedEvent, context: object) -> None:
        assert let_go.wait(timeout=30)  # blocks the whole loop on purpose

    relay = Relay(
        store=store,
        transports={"handlers": handlers},
        config=RelayConfig(
            lease="3s", heartbeat_interval="100ms", send_timeout="1s", stall_limit="500ms", drain_timeout="1s"
        ),
        on_stall=stalled,
    )
    with store.transaction() as transaction:
        Outbox().record(transaction, Event("wedge", {}))
    with pytest.raises(RelayFailedError, match="the event loop has been silent"):
        await asyncio.wait_for(relay.run(), 30)
    assert "test_stall.py" in reported[0]
    async with aclosing(store.clone()) as other:
        await other.lanes.join(RelayRegistration(id="other"), lease=60)
        assert len(await other.lanes.acquire("other", limit=64)) == 64


async def test_a_briefly_blocked_loop_keeps_its_lanes() -> None:
    store, handlers = MemoryStore(), Handlers()
    longer_than_the_lease = threading.Event()
    handled: list[str] = []

    @handlers.on("slow", name="slow")
    async def slow(event: ReceivedEvent, context: object) -> None:
        assert longer_than_the_lease.wait(timeout=30)  # blocks the whole loop
        handled.append(event.event_id)

    relay = Relay(
        store=store,
        transports={"handlers": handlers},
        config=RelayConfig(lease="2s", heartbeat_interval="50ms", send_timeout="900ms", stall_limit="1m"),
    )
    with store.transaction() as transaction:
        Outbox().record(transaction, Event("slow", {}, event_id="s"))
    threading.Timer(2.5, longer_than_the_lease.set).start()
    await asyncio.wait_for(relay.run_until_empty(), 30)
    assert handled == ["s"]
    [row] = await find_event(store, "s")
    assert row.status == "PUBLISHED"


class Unclonable(MemoryStore):
    """As a store that reads a file when no descriptor is free."""

    def clone(self, **_: Any) -> Self:
        raise NO_FILE


def no_loop() -> None:
    raise NO_FILE


@pytest.mark.parametrize("fault", ["store", "loop"])
async def test_a_relay_whose_heartbeat_cannot_begin_ends(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    store = Unclonable() if fault == "store" else MemoryStore()
    if fault == "loop":
        monkeypatch.setattr(asyncio, "new_event_loop", no_loop)
    relay = Relay(store=store, transports={"handlers": Handlers()})
    with pytest.raises(RelayFailedError, match=r"its heartbeat failed: .*Too many open files"):
        await asyncio.wait_for(relay.run(), 30)
    assert (await store.admin.inspection.overview()).relays == []
