"""`python -m pillarbox.ops.drill.writer_process`: writes transactions over its own keys, some of them rolled back.

It logs the events of a transaction before it begins and the outcome after it ended. Each key belongs to one writer, so
that its commits have an order.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Sequence
from typing import Any

from pillarbox.core.event import Event
from pillarbox.ops.child_process import on_parent_exit, read_job
from pillarbox.ops.drill.database import DrillTables
from pillarbox.ops.drill.ledger import HOLDS, KeyedEvent, TransactionLog
from pillarbox.ops.drill.target import EVENT_TYPE, DrillJob
from pillarbox.ops.wiring import make_outbox
from pillarbox.plugins import Producer

MOST_PER_PART = 10
"""Events that a part of a transaction records, at most."""
PART_OF_ROLLBACKS = 0.1
PART_OF_SAVEPOINTS = 0.5
PAUSE = 0.02
RETRY_PAUSE = 0.2
FILLER = "x" * 200


class RolledBack(Exception):
    """Raised at the end of a transaction that is rolled back as a whole."""


class DrillWriter:
    """Writes one transaction after another."""

    def __init__(self, job: DrillJob) -> None:
        target = job.target()
        self._tables = DrillTables(target)
        self._outbox = make_outbox(target.settings)
        self._log = TransactionLog(job.folder, job.role)
        self._role = job.role
        self._rng = random.Random(f"{job.seed} {job.role}")  # noqa: S311 - not for secrets
        self._keys = [f"{job.role}-key-{number}" for number in range(job.keys)]
        self._producer: Producer | None = None
        self._count = 0

    async def write(self) -> int:
        """Write one transaction; return how many events it committed."""
        self._count += 1
        number = f"{self._role}-{self._count}"
        before, undone, after = self._events(2), self._events(1), self._events(1)
        if self._rng.random() >= PART_OF_SAVEPOINTS:
            undone = []
        rolled_back = self._rng.random() < PART_OF_ROLLBACKS
        self._log.intend(number, _keyed([*before, *after]), _keyed(undone))
        committed = len(before) + len(after)
        try:
            await self._transaction(number, before, undone, after, rolled_back=rolled_back)
        except RolledBack:
            self._log.end(number, "rolled back", 0)
            return 0
        except Exception as error:  # whatever the driver raised: the database decides what became of it
            print(f"{number}: {type(error).__name__}: {error}", flush=True)
            self._log.end(number, "unknown", 0)
            await self._reconnect()
            return 0
        self._log.end(number, "committed", committed)
        return committed

    async def _transaction(
        self,
        number: str,
        before: Sequence[Event],
        undone: Sequence[Event],
        after: Sequence[Event],
        *,
        rolled_back: bool,
    ) -> None:
        producer = self._producer = self._producer or self._tables.producer()
        async with producer.transaction() as connection:
            await self._tables.arun(connection, "write_transaction", number)
            await self._record(producer, connection, before)
            if undone:
                await self._tables.arun(connection, "savepoint")
                await self._record(producer, connection, undone)
                await self._tables.arun(connection, "roll_back_part")
            await self._record(producer, connection, after)
            if rolled_back:
                raise RolledBack

    async def _record(self, producer: Producer, connection: Any, events: Sequence[Event]) -> None:
        if producer.awaited:
            await self._outbox.arecord(connection, *events)
        else:
            self._outbox.record(connection, *events)

    def _events(self, parts: int) -> list[Event]:
        count = sum(self._rng.randint(1, MOST_PER_PART) for _ in range(parts))
        return [Event(EVENT_TYPE, {"filler": FILLER}, key=key) for key in self._rng.choices(self._keys, k=count)]

    async def _reconnect(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.aclose()
        await asyncio.sleep(RETRY_PAUSE)

    async def aclose(self) -> None:
        if self._producer is not None:
            await self._producer.aclose()
        self._log.close()


def _keyed(events: Sequence[Event]) -> list[KeyedEvent]:
    return [(event.key or "", event.event_id) for event in events]


async def run(job: DrillJob) -> None:
    """Write until the parent stops this process."""
    stopping = threading.Event()
    on_parent_exit(stopping.set)
    holds = [job.folder / name for name in HOLDS]
    writer = DrillWriter(job)
    due = time.monotonic()
    while not stopping.is_set():
        if due > time.monotonic() or any(hold.exists() for hold in holds):
            await asyncio.sleep(PAUSE)
            continue
        due = max(due, time.monotonic() - 1) + await writer.write() / job.rate
    await writer.aclose()


def main() -> None:
    asyncio.run(run(DrillJob.load(read_job())))


if __name__ == "__main__":
    main()
