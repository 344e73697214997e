"""A heartbeat takes a loop for hanging only if it does nothing while the heartbeat itself runs."""

import asyncio

import pytest

from pillarbox.core.clock import SystemClock
from pillarbox.core.lane import Renewal
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.liveness import Heartbeat
from pillarbox.stores.memory import MemoryStore
from tests.unit.relay.contexts import relay_context


class Listener:
    def __init__(self) -> None:
        self.stalled = asyncio.Event()
        self.renewals = asyncio.Event()

    def renewed(self, deadline: float, renewal: Renewal) -> None:
        self.renewals.set()

    def lease_lost(self, reason: str) -> None:
        self.renewals.set()

    def session_lost(self) -> None: ...
    def lanes_available(self) -> None: ...

    def loop_stalled(self, reason: str) -> None:
        self.stalled.set()

    def heartbeat_failed(self, error: Exception) -> None:
        raise error


class ResumingClock(SystemClock):
    """The relay's loop ticks as soon as the heartbeat sleeps."""

    def __init__(self) -> None:
        self.state = relay_context().heartbeat

    async def sleep(self, seconds: float) -> None:
        self.state.ticked = self.monotonic()
        await super().sleep(seconds)


def heartbeat(listener: Listener, clock: SystemClock) -> Heartbeat:
    """Of a relay whose loop has been silent for longer than its limit."""
    config = RelayConfig(heartbeat_interval="20ms", lease="3s", send_timeout="1s", stall_limit="1s")
    context = relay_context(store := MemoryStore(lanes=1), config=config, clock=clock)
    context.heartbeat.ticked = clock.monotonic() - 70
    context.heartbeat.joined = True
    if isinstance(clock, ResumingClock):
        clock.state = context.heartbeat
    return Heartbeat(context, listener, store)


@pytest.mark.parametrize(("clock", "stalled"), [(SystemClock(), True), (ResumingClock(), False)])
async def test_a_loop_that_resumes_with_the_heartbeat_does_not_hang(clock: SystemClock, stalled: bool) -> None:
    listener = Listener()
    beating = heartbeat(listener, clock)
    beating.begin()
    events = [asyncio.create_task(event.wait()) for event in (listener.stalled, listener.renewals)]
    await asyncio.wait(events, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    await beating.end()
    for event in events:
        event.cancel()
    assert (listener.stalled.is_set(), listener.renewals.is_set()) == (stalled, not stalled)
