"""The heartbeat: renews the lease on a loop of its own, because a blocked event loop must not lose the lanes.

It renews only while the relay's loop has ticked within `stall_limit`, or a wedged relay would keep its lanes for ever:
then it lets go. The deadline it sets counts from before the renewal was sent.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from pillarbox.core.clock import Clock
from pillarbox.core.errors import PillarboxError
from pillarbox.core.lane import InHand, Renewal
from pillarbox.core.store import Store


@dataclass(slots=True)
class Pulse:
    """What the relay's loop and the heartbeat tell each other; plain assignments, safe between two threads."""

    relay: str = ""
    ticked: float = 0.0
    in_hand: Sequence[InHand] = ()
    breakers: Mapping[str, str] | None = None
    joined: bool = False
    """Whether there is a lease to renew."""
    ended: bool = False
    thread: int = field(default_factory=threading.get_ident)
    """The thread of the relay's loop."""

    def whereabouts(self) -> str:
        frame = sys._current_frames().get(self.thread)
        return "".join(traceback.format_stack(frame, limit=20)) if frame is not None else "(its thread has ended)"


class Heartbeat:
    """Beats until it is told to end, finds the relay dead, or finds its loop wedged."""

    def __init__(
        self,
        *,
        store: Store,
        pulse: Pulse,
        clock: Clock,
        lease: float,
        interval: float,
        stall_limit: float,
        on_renewed: Callable[[float, Renewal], None],
        on_lost: Callable[[str], None],
        on_stalled: Callable[[str], None],
    ) -> None:
        self._store = store
        self._pulse = pulse
        self._clock = clock
        self._lease = lease
        self._interval = interval
        self._stall_limit = stall_limit
        self._on_renewed = on_renewed
        self._on_lost = on_lost
        self._on_stalled = on_stalled

    async def run(self) -> None:
        while not self._pulse.ended:
            began = self._clock.monotonic()
            silent = began - self._pulse.ticked
            if silent > self._stall_limit:
                await self._let_go(silent)
                return
            if self._pulse.joined:
                await self._beat(began)
            await self._clock.sleep(max(0.0, self._interval - (self._clock.monotonic() - began)))

    async def _let_go(self, silent: float) -> None:
        """The relay's loop is wedged: give its lanes away in its name, and show where it hangs."""
        self._pulse.joined = False
        with suppress(PillarboxError):
            await self._store.lanes.leave(self._pulse.relay)
        self._on_stalled(f"the event loop has been silent for {silent:.0f} s; it hangs at\n{self._pulse.whereabouts()}")

    async def _beat(self, began: float) -> None:
        pulse = self._pulse
        try:
            renewal = await self._store.lanes.renew(
                pulse.relay, lease=self._lease, in_hand=pulse.in_hand, breakers=pulse.breakers or {}
            )
        except PillarboxError:
            # The store is away: the deadline passes by itself if that lasts.
            return
        if renewal is None:
            pulse.joined = False
            self._on_lost("the lease ended before it was renewed")
        else:
            self._on_renewed(began + self._lease, renewal)


class HeartbeatThread:
    """A heartbeat on a thread and a loop of its own, with a store of its own."""

    def __init__(self, make: Callable[[Store], Heartbeat], store: Store) -> None:
        self._make = make
        self._store = store
        self._thread = threading.Thread(target=self._run, name="pillarbox-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout: float) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        asyncio.run(self._beat())

    async def _beat(self) -> None:
        store = self._store.beside()
        try:
            await self._make(store).run()
        finally:
            await store.aclose()
