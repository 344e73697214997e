"""A producer's transaction: rows get their place when they are appended and become visible when it commits.

Several may be open at once, so a transaction that commits late carries places lower than what was read already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from pillarbox.core.errors import DuplicateEvent, NotInTransaction
from pillarbox.core.message import Message
from pillarbox.core.row import Row
from pillarbox.stores.memory.tables import Identity, Stored, Tables


class MemoryTransaction:
    """See `pillarbox.core.row.InProcessTransaction`. Commits at the end of its block, unless that raises."""

    def __init__(self, tables: Tables, ring: Callable[[], None]) -> None:
        self._tables = tables
        self._ring = ring
        self._open = False
        self._rows: list[Message] = []
        self._ignored: set[Identity] = set()

    def __enter__(self) -> Self:
        self._open = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        if kind is None and self._rows:
            self._commit()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What is appended in this block is undone if it raises; the places drawn are lost."""
        mark = len(self._rows)
        try:
            yield
        except BaseException:
            del self._rows[mark:]
            raise

    def append_rows(self, rows: Sequence[Row], *, ignore_duplicates: bool) -> None:
        """Add rows, visible to nobody before the transaction commits. Raises DuplicateEvent, adding none."""
        if not self._open:
            raise NotInTransaction("this transaction is not open; record inside `with store.transaction() as tx:`")
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

    def _message(self, row: Row) -> Message:
        now = self._tables.now()
        return Message(
            id=self._tables.draw(),
            lane=self._tables.lane_of(row.key, row.event_id),
            event_id=row.event_id,
            destination=row.destination,
            event_type=row.event_type,
            aggregate_type=row.aggregate_type,
            aggregate_id=row.aggregate_id,
            key=row.key,
            payload=row.payload,
            content_type=row.content_type,
            headers_json=row.headers,
            schema_version=row.schema_version,
            correlation_id=row.correlation_id,
            causation_id=row.causation_id,
            trace_id=row.trace_id,
            occurred_at=row.occurred_at or now,
            recorded_at=now,
            available_at=row.available_at,
            held=None,
            attempts=0,
            tries=0,
            behind=False,
        )

    def _commit(self) -> None:
        with self._tables.lock:
            clashes = {message.identity for message in self._rows if message.identity in self._tables.waiting}
            # Somebody else committed the same id since it was appended.
            if refused := clashes - self._ignored:
                raise _duplicate(min(refused))
            for message in self._rows:
                if message.identity not in clashes:
                    self._tables.put(Stored(message=message))
        self._ring()


def _duplicate(identity: Identity) -> DuplicateEvent:
    event_id, destination = identity
    where = f" for {destination!r}" if destination else ""
    return DuplicateEvent(
        f"an event with the id {event_id!r} already waits{where}; "
        "give each event an id of its own, or record with duplicate='ignore'",
        field="event_id",
    )
