"""Floors: sequences below which a lane has no ready message, and none can appear.

While a transaction stays open, PostgreSQL keeps every row that was deleted since it began, and a fetch that begins at
the start of a lane skips them all. A fetch from the floor of each lane skips them once.

A row becomes ready only by an INSERT that draws a new sequence: no statement of the outbox makes a row ready that was
not. But a transaction may commit late with a low sequence. So floors rise only over sequences that are decided: each
transaction that drew one has ended. See docs/decisions/0033-floors.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence

from pillarbox.core.errors import SchemaError
from pillarbox.core.lane import LANES
from pillarbox.core.message import Message
from pillarbox.stores.postgres.arrays import literal
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.statements import PostgresStatements

SLOW = 0.01
"""Seconds after which a fetch is slow."""
SLOW_PER_MESSAGE = 0.00002
"""And for each message that it returned."""
SEARCH_EVERY = 0.25
"""The least seconds between two searches for floors while fetches are slow."""
SEARCH_FOR = 0.5
"""Seconds after which a search leaves the remaining lanes to the next one; longer after a fetch that took longer."""
CHECK_EVERY = 1.0
"""The least seconds between two checks that nothing is ready below the floors."""
CHECK_SHARE = 20
"""A check takes at most this fraction of the time."""
CHECK_FOR = 0.1
"""Seconds after which a check should have fewer lanes."""
LANES_PER_SCAN = 4
"""How many lanes without a floor one statement scans: behind a million delivered rows, a scan of all lanes could take
longer than a statement may."""
PREPARED = "prepared "


class DecidedSequences:
    """Up to which sequence all transactions have ended: told from who writes to the table, seen again and again."""

    def __init__(self) -> None:
        self.limit = 0
        """Every transaction that drew a sequence up to this one has ended."""
        self.last = 0
        """The last sequence that was drawn."""
        self._watched: tuple[int, set[str]] | None = None
        self._prepared: set[str] = set()

    def see(self, last: int, writers: Collection[str]) -> None:
        """last: the last sequence that was drawn before `writers`, the open transactions that write, were read."""
        now = set(writers)
        prepared = {writer for writer in now if writer.startswith(PREPARED)}
        if self._watched is not None:
            limit, before = self._watched
            remaining = before & now
            if any(not writer.startswith(PREPARED) for writer in before - now):
                # It has ended, or it was prepared for two-phase commit, which changes its name.
                remaining |= prepared - self._prepared
            if remaining:
                self._watched = limit, remaining
            else:
                self.limit, self._watched = limit, None
        if self._watched is None:
            if now:
                self._watched = last, now
            else:
                self.limit = last
        self.last, self._prepared = last, prepared


class Floors:
    """The floors of the lanes that one relay owns; none until a fetch was slow."""

    def __init__(self, connection: PostgresStoreConnection, statements: PostgresStatements) -> None:
        self._connection = connection
        self._find_writers = statements.get("find_writers")
        self._find_floors = statements.get("find_floors")
        self._floors: dict[int, int] = {}
        self._decided = DecidedSequences()
        self._generation = ""
        self.slow = SLOW
        self._took = 0.0
        """Seconds that the last fetch took, if it was slow."""
        self._next_search = self._next_check = 0.0
        self._lanes_per_check = LANES_PER_SCAN
        self._checked = 0

    async def known(self, lanes: Sequence[int]) -> tuple[str, str, int] | None:
        """What a fetch from the floors of these lanes takes; None: no floor is known, and it needs none."""
        if self._took and time.monotonic() >= self._next_search:
            await self.search(lanes)
        if self._floors and time.monotonic() >= self._next_check:
            await self.check()
        floors = [self._floors.get(lane, 0) for lane in lanes] if self._floors else []
        if not any(floors):
            return None
        if len(lanes) < len(self._floors):
            # Of lanes that another relay may own.
            self._floors = {lane: floor for lane, floor in zip(lanes, floors, strict=True) if floor}
        return literal(floors), self._generation, max(floors) - 1

    def fetched(self, messages: Sequence[Message], *, seconds: float) -> None:
        """A fetch ended: it took this long and returned these messages."""
        self._took = seconds if seconds > self.slow + SLOW_PER_MESSAGE * len(messages) else 0.0
        if self._floors and any(message.id < self._floors.get(message.lane, 0) for message in messages):
            # Sequences were drawn again, or someone made a row ready that was not.
            self._floors = {}

    async def search(self, lanes: Sequence[int]) -> None:
        """Raise the floors of these lanes as far as sequences are decided."""
        began, first = time.monotonic(), not self._floors
        try:
            limit = await self._decide()
        except SchemaError:
            # By default every role may read the locks. This one may not: it does without floors.
            self._next_search = math.inf
            return
        if limit:
            await self._raise([lane for lane in lanes if lane in self._floors], limit)
            others = [lane for lane in lanes if lane not in self._floors]
            while others and time.monotonic() < began + max(SEARCH_FOR, self._took):
                await self._raise(others[:LANES_PER_SCAN], limit)
                others = others[LANES_PER_SCAN:]
        ended = time.monotonic()
        self._next_search = ended + max(SEARCH_EVERY, ended - began)
        if first:
            self._next_check = ended + CHECK_EVERY

    async def check(self) -> None:
        """Check some lanes: whatever is ready below a floor was made so by hand, and drops the floor. Once the check of
        all lanes is fast, fetches need no floors any more."""
        self._next_check = time.monotonic() + CHECK_SHARE * CHECK_EVERY  # should it fail
        floors = self._floors
        known = sorted(floors)
        begin = self._checked % len(known)
        lanes = (known[begin:] + known[:begin])[: self._lanes_per_check]
        self._checked = begin + len(lanes)
        began = time.monotonic()
        found = await self._scan(lanes, [1] * len(lanes), [floors[lane] - 1 for lane in lanes])
        took = time.monotonic() - began
        self._lanes_per_check = max(1, min(LANES, len(lanes) * 2 if took < CHECK_FOR else len(lanes) // 2))
        for lane, first in found.items():
            if first < floors[lane]:
                del floors[lane]
        if len(lanes) == len(known) and took < self.slow:
            self._floors = {}
        self._next_check = began + took + max(CHECK_EVERY, CHECK_SHARE * took)

    async def _decide(self) -> int:
        [(last, generation, writers)] = await self._connection.fetch(self._find_writers)
        if generation != self._generation or last < self._decided.last:
            self._floors = {}
            self._generation, self._decided = generation, DecidedSequences()
        if last:
            self._decided.see(last, writers)
        return self._decided.limit

    async def _raise(self, lanes: Sequence[int], limit: int) -> None:
        if lanes:
            floors = self._floors
            firsts = [floors.get(lane, 1) for lane in lanes]
            floors |= await self._scan(lanes, firsts, [max(limit, first - 1) for first in firsts])

    async def _scan(self, lanes: Sequence[int], firsts: Sequence[int], lasts: Sequence[int]) -> dict[int, int]:
        """The first sequence of each lane between two that is of a ready message; without one, that after the last."""
        rows = await self._connection.fetch(self._find_floors, literal(lanes), literal(firsts), literal(lasts))
        return {row["lane"]: row["floor"] for row in rows}
