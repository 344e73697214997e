"""Low-water marks: sequences below which a lane has no ready message, and none can appear.

While a transaction stays open, PostgreSQL keeps every row that was deleted since it began, and a fetch that begins at
the start of a lane skips them all. A fetch from the low-water mark of each lane skips them once.

A row becomes ready only by an INSERT that draws a new sequence: no statement of the outbox makes a row ready that was
not. But a transaction may commit late with a low sequence. So the marks rise only over sequences that are decided: each
transaction that drew one has ended. See docs/decisions/0033-low-water-marks.md.

The marks only save time: without them, or if a statement that looks for them fails, a fetch is slow and complete.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Generator, Sequence
from typing import Any

from pillarbox.core.errors import PillarboxError, SchemaError, StoreUnavailableError
from pillarbox.core.message import Message
from pillarbox.stores.postgres.arrays import literal
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.statements import PostgresStatements

SLOW = 0.01
"""Seconds after which a fetch is slow."""
SLOW_PER_MESSAGE = 0.00002
"""And for each message that it returned."""
STATEMENT_LIMIT = 0.25
"""Seconds after which the server cancels a statement of a search or a check."""
GRACE = 5.0
"""Seconds to wait for a response after that: the server may be frozen, which is for the next fetch to find."""
SEARCH_EVERY = 0.25
"""The least seconds between two searches while fetches are slow."""
SEARCH_FOR = 0.5
"""Seconds after which a search leaves the rest to the next one."""
SEARCH_FOR_LONGER = 5.0
"""The same after a fetch that took as long."""
CHECK_EVERY = 1.0
"""The least seconds between two checks that nothing is ready below the marks."""
SMALL_SHARE = 20
"""Checks, and searches that find nothing out because all their scans fail, take at most this fraction of the time."""
FORBIDDEN_FOR = 60.0
"""Seconds between two searches by a role that must not read the locks."""
FIRST_WINDOW = 10_000
LEAST_WINDOW = 100
GROWTH = 4
SHRINKAGE = 16
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


class Window:
    """How many sequences of each lane one statement scans, so that it ends within its limit.

    Behind a long transaction a scan visits every delivered row, and one lane may have a million of them. Growing
    windows pass the sequences quickly whose rows are gone.
    """

    def __init__(self) -> None:
        self.size = FIRST_WINDOW

    def succeeded(self, *, seconds: float, limit: float) -> None:
        if seconds * GROWTH < limit / 2:
            self.size *= GROWTH

    def failed(self, scanned: int) -> None:
        """scanned: how many sequences the scan had to pass, which may be fewer than it was allowed to."""
        self.size = max(LEAST_WINDOW, min(self.size, scanned) // SHRINKAGE)


class LowWaterMarks:
    """The marks of the lanes that one relay owns; none until a fetch was slow."""

    def __init__(
        self, connection: PostgresStoreConnection, statements: PostgresStatements, *, statement_timeout: float
    ) -> None:
        self._connection = connection
        self._limit_time = statements.get("limit_statement_time")
        self._find_writers = statements.get("find_writers")
        self._find_marks = statements.get("find_low_water_marks")
        self._limit = min(STATEMENT_LIMIT, statement_timeout or STATEMENT_LIMIT)
        self._marks: dict[int, int] = {}
        self._decided = DecidedSequences()
        self._generation = ""
        self.slow = SLOW
        self._took = 0.0
        """Seconds that the last fetch took, if it was slow."""
        self._next_search = self._next_check = 0.0
        self._searched, self._checked = Window(), Window()
        self._checked_up_to = 0

    async def known(self, lanes: Sequence[int]) -> tuple[str, str, int] | None:
        """What a fetch from the marks of these lanes takes; None: no mark is known, and it needs none."""
        # Whether there is a server is for the fetch to find out.
        if self._took and time.monotonic() >= self._next_search and self._connection.is_open:
            await self.search(lanes)
        if self._marks and time.monotonic() >= self._next_check and self._connection.is_open:
            await self.check()
        marks = [self._marks.get(lane, 0) for lane in lanes] if self._marks else []
        if not any(marks):
            return None
        if len(lanes) < len(self._marks):
            # Of lanes that another relay may own.
            self._marks = {lane: mark for lane, mark in zip(lanes, marks, strict=True) if mark}
        return literal(marks), self._generation, max(marks) - 1

    def fetched(self, messages: Sequence[Message], *, seconds: float) -> None:
        """A fetch ended: it took this long and returned these messages."""
        self._took = seconds if seconds > self.slow + SLOW_PER_MESSAGE * len(messages) else 0.0
        if self._marks and any(message.id < self._marks.get(message.lane, 0) for message in messages):
            # Sequences were drawn again, or a statement that is not of the outbox made a row ready.
            self._marks = {}

    async def search(self, lanes: Sequence[int]) -> None:
        """Raise the marks of these lanes as far as sequences are decided, and time allows. A failure leaves them as
        they are: the fetch that follows reports an outage."""
        began, first = time.monotonic(), not self._marks
        pause, share = SEARCH_EVERY, SMALL_SHARE
        try:
            if await self._raise(lanes, await self._decide(), until=began + self._search_for()):
                share = 1
        except SchemaError as error:
            # By default every role may read the locks. If this one may not, it does without marks.
            pause = FORBIDDEN_FOR if error.forbidden else CHECK_EVERY
        except PillarboxError:
            pass
        finally:
            ended = time.monotonic()
            self._next_search = ended + max(pause, share * (ended - began))
        if first:
            self._next_check = ended + CHECK_EVERY

    async def check(self) -> None:
        """Check the next sequences below the marks: what is ready there was made so by hand, and drops the mark of its
        lane. Once all of them are checked within the time of a fast fetch, fetches need no marks any more."""
        began, marks = time.monotonic(), self._marks
        end = max(marks.values()) - 1
        first = self._checked_up_to + 1 if self._checked_up_to < end else 1
        last = min(end, first + self._checked.size - 1)
        lanes = [lane for lane, mark in marks.items() if mark > first]
        lasts = [min(last, marks[lane] - 1) for lane in lanes]
        try:
            found = await self._scan(self._checked, lanes, [first] * len(lanes), lasts)
        except PillarboxError:
            found = None
        finally:
            ended = time.monotonic()
            self._next_check = ended + max(CHECK_EVERY, SMALL_SHARE * (ended - began))
        if found is None:
            return
        self._checked_up_to = last
        for lane, bound in zip(lanes, lasts, strict=True):
            if found[lane] <= bound:
                del marks[lane]
        if (first, last) == (1, end) and ended - began < self.slow:
            self._marks = {}

    def _search_for(self) -> float:
        return max(SEARCH_FOR, min(self._took, SEARCH_FOR_LONGER))

    async def _decide(self) -> int:
        [(last, generation, writers)] = await self._run(self._find_writers)
        if generation != self._generation or last < self._decided.last:
            self._marks = {}
            self._generation, self._decided = generation, DecidedSequences()
        if last:
            self._decided.see(last, writers)
        return self._decided.limit

    async def _raise(self, lanes: Sequence[int], limit: int, *, until: float) -> bool:
        """Raise the marks of these lanes up to this sequence. Returns False if every scan failed."""
        marks, results = self._marks, set[bool]()
        left = [lane for lane in lanes if marks.get(lane, 1) <= limit]
        while left and time.monotonic() < until:
            firsts = [marks.get(lane, 1) for lane in left]
            lasts = [min(limit, first + self._searched.size - 1) for first in firsts]
            found = await self._scan(self._searched, left, firsts, lasts)
            results.add(found is not None)
            if found is not None:
                marks |= found
                # Where a lane has a ready message, its mark stays.
                left = [lane for lane, last in zip(left, lasts, strict=True) if last < found[lane] <= limit]
            elif not self._connection.is_open:
                break
        return results != {False}

    async def _scan(
        self, window: Window, lanes: Sequence[int], firsts: Sequence[int], lasts: Sequence[int]
    ) -> dict[int, int] | None:
        """The first sequence of each lane between two that is of a ready message; without one, that after the last.

        None: it failed, and the next scan is of fewer sequences.
        """
        began = time.monotonic()
        try:
            rows = await self._run(self._find_marks, literal(lanes), literal(firsts), literal(lasts))
        except StoreUnavailableError:
            window.failed(max(last - first for first, last in zip(firsts, lasts, strict=True)) + 1)
            return None
        window.succeeded(seconds=time.monotonic() - began, limit=self._limit)
        return {row["lane"]: row["mark"] for row in rows}

    async def _run(self, sql: str, *arguments: object) -> Sequence[Any]:
        """Run a statement that the server cancels after the limit."""

        def steps() -> Generator[tuple[Any, ...], Sequence[Any], Sequence[Any]]:
            yield self._limit_time, f"{self._limit * 1000:.0f}ms"
            return (yield sql, *arguments)

        return await self._connection.transact(steps(), answer_within=self._limit + GRACE)
