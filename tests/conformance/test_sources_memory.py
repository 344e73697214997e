"""The memory source fulfils the contract of all sources."""

from collections.abc import AsyncIterator

import pytest

from pillarbox.core.source import Incoming
from pillarbox.testing.conformance.sources import SourceCapabilities, SourceConformance, SourceDeadLetter, SourceHarness
from pillarbox.testing.conformance.sources.harness import PREFETCH
from pillarbox.transports.memory_source import MemoryQueue, MemorySource


class MemorySourceHarness(SourceHarness):
    capabilities = SourceCapabilities(outages=True)

    def __init__(self) -> None:
        self._queue = MemoryQueue()
        self._source = self.another()

    @property
    def source(self) -> MemorySource:
        return self._source

    def another(self) -> MemorySource:
        return MemorySource(self._queue, prefetch=PREFETCH)

    async def put(self, *messages: Incoming) -> None:
        for message in messages:
            self._queue.put(message)

    async def dead(self) -> list[SourceDeadLetter]:
        return [
            SourceDeadLetter(dead.incoming.event_id, dead.incoming.body, dead.incoming.attempts, dead.reason)
            for dead in self._queue.dead
        ]

    async def cut(self) -> None:
        self._source.outage()

    async def heal(self) -> None:
        self._source.heal()


class TestMemorySource(SourceConformance):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[SourceHarness]:
        harness = MemorySourceHarness()
        yield harness
        await harness.source.aclose()
