"""Writers: transactions over many keys, some rolled back, some with savepoints that are rolled back."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from pillarbox import Event, Outbox
from pillarbox.ops.drill.checker import WriterLedger
from tests.faults.databases import Database, Writer

WRITERS = 2
MOST_PER_TRANSACTION = 20

Noted = list[tuple[str, str]]


class Workload:
    """Writes events of one type over `keys` keys. Each key belongs to one writer, so that its commits have an order."""

    def __init__(self, database: Database, event_type: str, ledger: WriterLedger, *, keys: int, seed: int) -> None:
        self._database = database
        self._event_type = event_type
        self._ledger = ledger
        self._outbox = Outbox()
        names = [f"key-{number}" for number in range(keys)]
        self._keys = [names[writer::WRITERS] for writer in range(WRITERS)]
        self._chances = [random.Random(seed + writer) for writer in range(WRITERS)]

    def write(self, count: int) -> None:
        """Commit at least `count` events, and roll back some more."""
        with ThreadPoolExecutor(WRITERS) as pool:
            for done in [pool.submit(self._write, writer, count // WRITERS) for writer in range(WRITERS)]:
                done.result()

    def _write(self, writer: int, count: int) -> None:
        with self._database.writer() as connected:
            while count > 0:
                count -= self._transaction(connected, self._chances[writer], self._keys[writer])

    def _transaction(self, writer: Writer, rng: random.Random, keys: Sequence[str]) -> int:
        kept: Noted = []
        undone: Noted = []
        rolled_back = rng.random() < 0.1
        with writer.transaction(rolled_back=rolled_back):
            for _ in range(2):
                kept += self._record(writer, rng, keys)
            if rng.random() < 0.5:
                with writer.savepoint():
                    undone += self._record(writer, rng, keys)
            kept += self._record(writer, rng, keys)
        self._ledger.roll_back(undone + (kept if rolled_back else []))
        if rolled_back:
            return 0
        self._ledger.commit(kept)
        return len(kept)

    def _record(self, writer: Writer, rng: random.Random, keys: Sequence[str]) -> Noted:
        chosen = rng.choices(keys, k=rng.randint(1, MOST_PER_TRANSACTION))
        events = [Event(self._event_type, {"filler": "x" * 200}, key=key) for key in chosen]
        return list(zip(chosen, self._outbox.record(writer.connection, *events), strict=True))
