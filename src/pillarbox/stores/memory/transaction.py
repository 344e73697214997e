"""The transaction of a producer or a consumer. Its writes become visible when it commits.

Rows get their sequence when they are appended. Several transactions may be open at once, so one that commits late has
lower sequences than messages that were fetched already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from pillarbox.core.errors import DuplicateEventError, InboxError, NotInTransactionError, RecordError
from pillarbox.core.message import Message
from pillarbox.core.rows import EventRow, InboxRecord
from pillarbox.core.statistics import ConsumerStatistics
from pillarbox.stores.memory.tables import Identity, StoredMessage, Tables


class MemoryTransaction:
    """See `EventTransaction` and `InboxTransaction` of the core. Commits when its block ends, unless that raises."""

    def __init__(self, tables: Tables, on_commit: Callable[[Sequence[Message]], None], *, max_payload: int) -> None:
        """on_commit: called with the messages that a commit added, if there are any."""
        self._tables = tables
        self._on_commit = on_commit
        self._max_payload = max_payload
        self._open = False
        self._rows: list[Message] = []
        self._ignored: set[Identity] = set()
        self._records: list[InboxRecord] = []
        self._statistics: list[ConsumerStatistics] = []

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
            self._release_records(0)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo the writes of this block if it raises; their sequences are not used again."""
        rows, records, statistics = len(self._rows), len(self._records), len(self._statistics)
        try:
            yield
        except BaseException:
            del self._rows[rows:]
            del self._statistics[statistics:]
            self._release_records(records)
            raise

    def append_rows(self, rows: Sequence[EventRow], *, ignore_duplicates: bool) -> None:
        """Add rows that become visible with the commit. Raises DuplicateEventError or RecordError, adding none."""
        self._check_open()
        self._check_sizes(rows)
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

        Raises InboxError while another open transaction has written the same record: waiting for it would block
        all other code of this thread.
        """
        self._check_open()
        with self._tables.lock:
            whose = self._tables.admitting.get(record)
            if record in self._tables.inbox or whose is self:
                return False
            if whose is not None:
                raise InboxError(
                    f"event {record.event_id} is being processed for {record.consumer} in another open transaction; "
                    "retry when that transaction has ended"
                )
            self._tables.admitting[record] = self
        self._records.append(record)
        return True

    def add_statistics(self, statistics: ConsumerStatistics) -> None:
        """Add to the consumer statistics; it counts once the transaction commits."""
        self._check_open()
        self._statistics.append(statistics)

    def _check_sizes(self, rows: Sequence[EventRow]) -> None:
        """The limit of the store, which may be lower than that of the outbox."""
        for row in rows:
            if len(row.payload) > self._max_payload:
                raise RecordError(
                    f"payload of {row.event_type} has {len(row.payload)} bytes, and max_payload of the store allows "
                    f"{self._max_payload}; make the event smaller, or raise max_payload",
                    field="payload",
                )

    def _check_open(self) -> None:
        if not self._open:
            raise NotInTransactionError("this transaction is not open; use it inside `with store.transaction() as tx:`")

    def _release_records(self, mark: int) -> None:
        with self._tables.lock:
            for record in self._records[mark:]:
                del self._tables.admitting[record]
        del self._records[mark:]

    def _message(self, row: EventRow) -> Message:
        self._tables.recorded += 1
        lane = self._tables.lane_of(row.key, row.event_id)
        return row.message(id=self._tables.next_number(), lane=lane, recorded_at=self._tables.now())

    def _commit(self) -> None:
        with self._tables.lock:
            clashes = {message.identity for message in self._rows if message.identity in self._tables.waiting}
            # Another transaction has committed the same id since it was appended.
            if refused := clashes - self._ignored:
                raise _duplicate(min(refused))
            added = [message for message in self._rows if message.identity not in clashes]
            for message in added:
                self._tables.put(StoredMessage(message=message))
            now = self._tables.now()
            self._tables.inbox |= dict.fromkeys(self._records, now)
            self._tables.consumer_statistics += [(now, statistics) for statistics in self._statistics]
        if added:
            self._on_commit(added)


def _duplicate(identity: Identity) -> DuplicateEventError:
    event_id, destination = identity
    where = f" for {destination!r}" if destination else ""
    return DuplicateEventError(
        f"an event with the id {event_id!r} is already pending{where}; "
        "give each event an id of its own, or record with duplicate='ignore'",
        field="event_id",
    )
