"""A producer's or a consumer's transaction: what is written in it becomes visible when it commits.

Rows get their place when they are appended. Several transactions may be open at once, so one that commits late carries
places lower than what was read already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from pillarbox.core.errors import DuplicateEventError, InboxError, NotInTransactionError
from pillarbox.core.message import Message
from pillarbox.core.row import ConsumerStatistics, InboxRecord, Row
from pillarbox.stores.memory.tables import Identity, Stored, Tables


class MemoryTransaction:
    """See `InProcessTransaction` and `InProcessInbox` of the core. Commits when its block ends, unless that raises."""

    def __init__(self, tables: Tables, ring: Callable[[], None]) -> None:
        self._tables = tables
        self._ring = ring
        self._open = False
        self._rows: list[Message] = []
        self._ignored: set[Identity] = set()
        self._receipts: list[InboxRecord] = []
        self._tallies: list[ConsumerStatistics] = []

    def __enter__(self) -> Self:
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        try:
            if kind is None:
                self._commit()
        finally:
            self._forget_receipts(0)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What is written in this block is undone if it raises; the places drawn are lost."""
        mark, admitted, tallied = len(self._rows), len(self._receipts), len(self._tallies)
        try:
            yield
        except BaseException:
            del self._rows[mark:]
            del self._tallies[tallied:]
            self._forget_receipts(admitted)
            raise

    def append_rows(self, rows: Sequence[Row], *, ignore_duplicates: bool) -> None:
        """Add rows, visible to nobody before the transaction commits. Raises DuplicateEventError, adding none."""
        self._check_open()
        with self._tables.lock:
            taken = {message.identity for message in self._rows}
            fresh: list[Message] = []
            for row in rows:
                identity = (row.event_id, row.destination)
                if identity not in taken and identity not in self._tables.waiting:
                    taken.add(identity)
                    fresh.append(self._message(row))
                elif not ignore_duplicates:
                    raise _duplicate(identity)
        if ignore_duplicates:
            self._ignored |= {message.identity for message in fresh}
        self._rows += fresh

    def admit_record(self, record: InboxRecord) -> bool:
        """Write an inbox record that counts once the transaction commits; False if there is one already.

        Raises InboxError while another open transaction has written the same: to wait for it would stop whatever
        shares this thread with it.
        """
        self._check_open()
        with self._tables.lock:
            whose = self._tables.admitting.get(record)
            if record in self._tables.inbox or whose is self:
                return False
            if whose is not None:
                raise InboxError(
                    f"event {record.event_id} is just being handled for {record.consumer} in another transaction; "
                    "try again when that has ended"
                )
            self._tables.admitting[record] = self
        self._receipts.append(record)
        return True

    def add_statistics(self, statistics: ConsumerStatistics) -> None:
        """Add to the consumer statistics; it counts once the transaction commits."""
        self._check_open()
        self._tallies.append(statistics)

    def _check_open(self) -> None:
        if not self._open:
            raise NotInTransactionError("this transaction is not open; use it inside `with store.transaction() as tx:`")

    def _forget_receipts(self, mark: int) -> None:
        with self._tables.lock:
            for receipt in self._receipts[mark:]:
                del self._tables.admitting[receipt]
        del self._receipts[mark:]

    def _message(self, row: Row) -> Message:
        self._tables.recorded += 1
        lane = self._tables.lane_of(row.key, row.event_id)
        return row.message(id=self._tables.draw(), lane=lane, recorded_at=self._tables.now())

    def _commit(self) -> None:
        with self._tables.lock:
            clashes = {message.identity for message in self._rows if message.identity in self._tables.waiting}
            # Somebody else committed the same id since it was appended.
            if refused := clashes - self._ignored:
                raise _duplicate(min(refused))
            for message in self._rows:
                if message.identity not in clashes:
                    self._tables.put(Stored(message=message))
            now = self._tables.now()
            self._tables.inbox |= dict.fromkeys(self._receipts, now)
            self._tables.consumer_statistics += [(now, tally) for tally in self._tallies]
        if self._rows:
            self._ring()


def _duplicate(identity: Identity) -> DuplicateEventError:
    event_id, destination = identity
    where = f" for {destination!r}" if destination else ""
    return DuplicateEventError(
        f"an event with the id {event_id!r} already waits{where}; "
        "give each event an id of its own, or record with duplicate='ignore'",
        field="event_id",
    )
