"""The health of a process that consumes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from apps.runtime.stores import Store
from pillarbox import PillarboxError
from pillarbox.observations import (
    ConsumerObservation,
    ConsumerStarted,
    ConsumerStopped,
    ConsumerStopRequested,
    SourceFailed,
    SourceRestored,
)

DATABASE_TIMEOUT = 3.0
"""Seconds within which the database must respond."""


class ConsumerHealth:
    """An observer of the consumers of one process: UP while all of them run and their database answers."""

    def __init__(self, store: Store) -> None:
        """store: an outbox in the database of the consumers; its connections are not theirs, so that all of those may
        be in use. The caller closes it."""
        self._store = store
        self._running: dict[str, bool] = {}
        self._errors: dict[str, str] = {}

    def __call__(self, observation: ConsumerObservation) -> None:
        match observation:
            case ConsumerStarted(consumer=consumer):
                self._running[consumer] = True
            case ConsumerStopRequested(consumer=consumer) | ConsumerStopped(consumer=consumer):
                self._running[consumer] = False
            case SourceFailed(consumer=consumer, error=error):
                self._errors[consumer] = error
            case SourceRestored(consumer=consumer):
                self._errors.pop(consumer, None)

    async def check(self) -> tuple[bool, Mapping[str, object]]:
        """Return whether the process is UP, and the details: DOWN if a consumer has stopped or the database does not
        respond. An unavailable broker appears in the details only: consumers reconnect, so a restart would not help."""
        database = await self._database_responds()
        up = database and bool(self._running) and all(self._running.values())
        return up, {
            "database": "UP" if database else "DOWN",
            "consumers": dict(self._running),
            "lastSourceErrors": dict(self._errors),
        }

    async def _database_responds(self) -> bool:
        try:
            async with asyncio.timeout(DATABASE_TIMEOUT):
                await self._store.admin.inspection.overview()
        except (PillarboxError, TimeoutError):
            return False
        return True
