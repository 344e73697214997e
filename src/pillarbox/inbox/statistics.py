"""Counts what a consumer processes, and writes the counts every ten seconds and at the end.

A failed write does not disturb consuming: it is announced once per outage, and the next write includes its counts.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from pillarbox.core.clock import Clock
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.inbox.acknowledgement import reason_of
from pillarbox.inbox.dispatch import ends_the_task
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
BACKGROUND_TIMEOUT = 30.0
"""Seconds that a write in the background may take: it waits for a thread and a connection, as events do."""
FOREGROUND_TIMEOUT = 5.0
"""Seconds that a write may take while an event or a stop waits for it."""


class _Failure(NamedTuple):
    error: str
    at: float


class StatisticsWriter:
    """Counts the observations of one consumer and writes its statistics."""

    def __init__(
        self,
        consumer: str,
        *,
        write: Callable[[ConsumerStatistics], Awaitable[None]],
        announce: ConsumerObserver,
        clock: Clock,
    ) -> None:
        self._consumer = consumer
        self._write = write
        self._announce = announce
        self._clock = clock
        self._counts = Counter[str]()
        self._failure: _Failure | None = None
        self._next = 0.0
        self._failure_announced = False

    def count(self, observation: ConsumerObservation) -> None:
        """Count an observation."""
        match observation:
            case EventProcessed():
                self._counts["processed"] += 1
            case DuplicateSkipped():
                self._counts["duplicates"] += 1
            case HandlingFailed(error=error, counted=True):
                self._count_failure("failures", error)
            case MessageDeadLettered(error=error):
                self._count_failure("dead_lettered", error)
            case _:
                pass

    def count_raised(self, error: BaseException) -> None:
        """Count an exception of a handler that a relay calls in-process; the relay decides about the event."""
        self._count_failure("failures", reason_of(error))

    async def run(self, *, until: asyncio.Event) -> None:
        """Write every ten seconds until the event is set. `write` writes the rest."""
        while True:
            try:
                async with asyncio.timeout(EVERY):
                    await until.wait()
                return
            except TimeoutError:
                await self.write(within=BACKGROUND_TIMEOUT)

    async def write_if_due(self) -> None:
        """`write`, at most every ten seconds: for a consumer that a relay calls, which has no `run`."""
        now = self._clock.monotonic()
        if now >= self._next:
            self._next = now + EVERY
            await self.write(within=FOREGROUND_TIMEOUT)

    async def write(self, *, within: float) -> None:
        """Write the counts, if there are any. Raises nothing but a cancellation."""
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
            self._announce_failure(error)
        else:
            self._failure_announced = False

    def _count_failure(self, kind: str, error: str) -> None:
        self._counts[kind] += 1
        self._failure = _Failure(error, self._clock.monotonic())

    def _put_back(self, counts: Counter[str], failure: _Failure | None) -> None:
        self._counts.update(counts)
        self._failure = self._failure or failure

    def _statistics(self, counts: Counter[str], failure: _Failure | None) -> ConsumerStatistics:
        return ConsumerStatistics(
            consumer=self._consumer,
            processed=counts["processed"],
            duplicates=counts["duplicates"],
            failures=counts["failures"],
            dead_lettered=counts["dead_lettered"],
            last_error=failure and failure.error,
            failed_ago=failure and round(self._clock.monotonic() - failure.at, 3),
        )

    def _announce_failure(self, error: BaseException) -> None:
        if not self._failure_announced:
            self._failure_announced = True
            self._announce(StatisticsFailed(consumer=self._consumer, error=reason_of(error)))
