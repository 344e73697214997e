"""Between two looks: how long to rest, and who may cut it short.

The doorbell is asked for only after a while without work, because each ring costs the producer a notification. A relay
that was rung for nothing twice in a row (the work was another relay's) stays awake for a while and looks by itself.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable

from pillarbox.core.clock import Clock
from pillarbox.core.duration import seconds
from pillarbox.core.store import Store
from pillarbox.relay.tuning import Tuning

FIRST_PAUSE = 0.005
DROWSY = 0.04
"""After a pause of this length the doorbell is asked for; until then looking is cheaper than being rung."""
IN_VAIN = 2
AWAKE_FOR = 5.0
AWAKE_PAUSE = 0.1


class Slumber:
    """The rests of one relay."""

    def __init__(
        self,
        *,
        relay: str,
        store: Store,
        clock: Clock,
        tuning: Tuning,
        next_probe: Callable[[], float] = lambda: math.inf,
    ) -> None:
        """next_probe: seconds until a destination may be probed, which needs a message."""
        self.relay = relay
        self._wakeup = store.wakeup
        self._clock = clock
        self._adaptive = tuning.adaptive
        self._doorbell = tuning.doorbell
        self._longest = seconds(tuning.poll_interval)
        self._next_probe = next_probe
        self._pause = FIRST_PAUSE
        self._stirred = asyncio.Event()
        self._asleep_until = 0.0
        self._awake_until = 0.0
        self._rung = False
        self._rung_in_vain = 0

    def stir(self) -> None:
        """There may be work: end the rest."""
        self._stirred.set()

    async def rest(self, longest: float) -> None:
        """Wait for a stir, at most so long."""
        self._stirred.clear()
        try:
            async with asyncio.timeout(longest):
                await self._stirred.wait()
        except TimeoutError:
            return

    async def listen(self) -> None:
        """Stir whenever the doorbell rings."""
        while True:
            if await self._wakeup.wait(self._longest):
                self._rung = True
                self.stir()

    async def after_work(self) -> None:
        """A look found something: look again at once, and let producers ring no more."""
        self._pause = FIRST_PAUSE
        self._rung = False
        self._rung_in_vain = 0
        await self._wake_up()

    async def after_nothing(self) -> None:
        """A look found nothing: rest, longer each time."""
        await self._count_the_ring()
        if await self._fall_asleep():
            return
        await self.rest(self._next_pause())
        self._pause = min(self._longest, self._pause * 2)

    def _next_pause(self) -> float:
        if not self._adaptive:
            return self._longest
        longest = min(self._longest, AWAKE_PAUSE) if self._clock.monotonic() < self._awake_until else self._longest
        return min(self._pause, longest, max(FIRST_PAUSE, self._next_probe()))

    async def _count_the_ring(self) -> None:
        if not self._rung:
            return
        self._rung = False
        self._rung_in_vain += 1
        if self._rung_in_vain >= IN_VAIN:
            self._rung_in_vain = 0
            self._awake_until = self._clock.monotonic() + AWAKE_FOR
            await self._wake_up()

    async def _fall_asleep(self) -> bool:
        """Ask to be rung, once nothing has come for a while; True: look once more before resting."""
        now = self._clock.monotonic()
        if not self._doorbell or self._pause < DROWSY or now < max(self._asleep_until, self._awake_until):
            return False
        sleep = 2 * max(DROWSY, self._longest)
        await self._wakeup.doze(self.relay, sleep)
        self._asleep_until = now + sleep / 2
        return True

    async def _wake_up(self) -> None:
        if self._asleep_until:
            self._asleep_until = 0.0
            await self._wakeup.rouse(self.relay)
