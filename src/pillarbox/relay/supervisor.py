"""The duties of one relay: they begin and end together, and the first that fails ends them all, with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from pillarbox.core.clock import Chance, Clock
from pillarbox.core.errors import RelayFailedError, StoreUnavailableError
from pillarbox.core.observations import Announcer, StoreFailed, StoreRestored
from pillarbox.core.retry import LONGEST_PAUSE, Backoff

Duty = Callable[[], Coroutine[Any, Any, None]]


class Crew:
    """Whoever does the duties of a relay."""

    def __init__(self, *, relay: str, clock: Clock, chance: Chance, announce: Announcer) -> None:
        self.relay = relay
        self._clock = clock
        self._chance = chance
        self._announce = announce
        self._tasks: list[asyncio.Task[None]] = []
        self.failure: RelayFailedError | None = None
        """Why the relay cannot go on, if it cannot."""
        self.on_failed: Callable[[], None] = lambda: None
        self._store_failed_at: float | None = None

    def begin(self, duties: Sequence[Duty]) -> None:
        """Do all of them from now on."""
        self.failure = None
        self._tasks = [asyncio.create_task(self._do(duty)) for duty in duties]

    async def end(self) -> None:
        """Do none of them any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def patiently(self, work: Duty) -> None:
        """Do it again, after a growing pause, whenever the store is away."""
        backoff = Backoff(self._chance)
        while True:
            began = self._clock.monotonic()
            try:
                await work()
            except StoreUnavailableError as error:
                if self._clock.monotonic() - began > LONGEST_PAUSE:
                    backoff.reset()  # it went well for a while: this is another outage
                await self._clock.sleep(self.store_failed(error, backoff))

    def store_failed(self, error: StoreUnavailableError, backoff: Backoff) -> float:
        """Say that the store cannot be reached; returns how long to pause before the next attempt."""
        delay = backoff.next()
        if self._store_failed_at is None:
            self._store_failed_at = self._clock.monotonic()
        self._announce(StoreFailed(relay=self.relay, error=str(error), delay=delay))
        return delay

    def store_answered(self) -> None:
        """Say so if it could not be reached before."""
        if self._store_failed_at is not None:
            seconds = self._clock.monotonic() - self._store_failed_at
            self._store_failed_at = None
            self._announce(StoreRestored(relay=self.relay, seconds=seconds))

    def fail(self, reason: str, cause: BaseException | None = None) -> None:
        """The relay cannot go on. The first thing that went wrong is the reason; the rest is its consequence."""
        if self.failure is None:
            self.failure = RelayFailedError(f"the relay stopped by itself: {reason}")
            self.failure.__cause__ = cause
        self.on_failed()

    async def _do(self, duty: Duty) -> None:
        try:
            await duty()
        except Exception as error:
            self.fail(f"{type(error).__name__}: {error}", error)
