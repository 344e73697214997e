"""What a consumer met since it last said so: counted as it is told, written every ten seconds and at the end.

Figures never disturb consuming: what cannot be written is told once, kept, and tried again the next time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from pillarbox.core.clock import Clock
from pillarbox.core.row import ConsumerStatistics
from pillarbox.inbox.decisions import told
from pillarbox.inbox.effects import ends_the_task
from pillarbox.inbox.observations import (
    ConsumerObservation,
    ConsumerObserver,
    DuplicateSkipped,
    EventProcessed,
    HandlingFailed,
    MessageDeadLettered,
    StatisticsFailed,
)

EVERY = 10.0
"""Seconds between two writes."""
PATIENCE = 30.0
"""Seconds that a write may take beside the work: it waits for a thread and a connection, as events do."""
HURRY = 5.0
"""Seconds that it may take where somebody waits for it."""


class _Failure(NamedTuple):
    error: str
    at: float


class StatisticsWriter:
    """Counts what one consumer does, and writes it to its statistics."""

    def __init__(
        self,
        consumer: str,
        *,
        write: Callable[[ConsumerStatistics], Awaitable[None]],
        tell: ConsumerObserver,
        clock: Clock,
    ) -> None:
        self._consumer = consumer
        self._write = write
        self._tell = tell
        self._clock = clock
        self._counts = Counter[str]()
        self._failure: _Failure | None = None
        self._next = 0.0
        self._complained = False

    def count(self, observation: ConsumerObservation) -> None:
        match observation:
            case EventProcessed():
                self._counts["handled"] += 1
            case DuplicateSkipped():
                self._counts["repeated"] += 1
            case HandlingFailed(error=error, counted=True):
                self._count_failure("failed", error)
            case MessageDeadLettered(error=error):
                self._count_failure("given_up", error)
            case _:
                pass

    def raised(self, error: BaseException) -> None:
        """Count what a function raised that a relay called: the relay decides, and tells, what becomes of the event."""
        self._count_failure("failed", told(error))

    async def run(self, *, until: asyncio.Event) -> None:
        """Write now and then. What is counted after the last time is left for `write`."""
        while True:
            try:
                async with asyncio.timeout(EVERY):
                    await until.wait()
                return
            except TimeoutError:
                await self.write(within=PATIENCE)

    async def write_if_due(self) -> None:
        """`write`, if the last one that was due is ten seconds ago: for who has no `run`."""
        now = self._clock.monotonic()
        if now >= self._next:
            self._next = now + EVERY
            await self.write(within=HURRY)

    async def write(self, *, within: float) -> None:
        """Write what was counted, if anything; raises nothing but a cancellation."""
        counts, failure = self._counts, self._failure
        if not counts:
            return
        self._counts, self._failure = Counter[str](), None
        try:
            async with asyncio.timeout(within):
                await self._write(self._statistics(counts, failure))
        except BaseException as error:
            self._put_back(counts, failure)
            if ends_the_task(error):
                raise
            self._complain(error)
        else:
            self._complained = False

    def _count_failure(self, kind: str, error: str) -> None:
        self._counts[kind] += 1
        self._failure = _Failure(error, self._clock.monotonic())

    def _put_back(self, counts: Counter[str], failure: _Failure | None) -> None:
        self._counts.update(counts)
        self._failure = self._failure or failure

    def _statistics(self, counts: Counter[str], failure: _Failure | None) -> ConsumerStatistics:
        return ConsumerStatistics(
            consumer=self._consumer,
            handled=counts["handled"],
            repeated=counts["repeated"],
            failed=counts["failed"],
            given_up=counts["given_up"],
            last_error=failure and failure.error,
            failed_ago=failure and round(self._clock.monotonic() - failure.at, 3),
        )

    def _complain(self, error: BaseException) -> None:
        if not self._complained:
            self._complained = True
            self._tell(StatisticsFailed(consumer=self._consumer, error=told(error)))
