"""Captures what every outbox of this process records during a test.

The code under test records as always, with its own outbox and on a connection that the test provides:

- on `captured.transaction()`, which is a transaction of a store in memory: no database is needed;
- or on the application's own connection or session: the event is written to its tables, in its transaction.

Rolled back events are not recorded: in memory the commit decides, in a database the tables do, through the connection
that the test passes to `read` or `aread`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Self

from pillarbox import connections, dialects
from pillarbox.connections import BoundStatement, Steps
from pillarbox.connections.accepted import AsyncRecordable, Recordable
from pillarbox.core.errors import ConfigurationError, NotInTransactionError
from pillarbox.core.event import Event
from pillarbox.core.message import Message
from pillarbox.core.rows import EventRow
from pillarbox.record.listeners import Recording, listening
from pillarbox.record.outbox import Outbox
from pillarbox.statements import StatementSet, load_statements
from pillarbox.stores.memory import MemoryStore, MemoryTransaction
from pillarbox.table_names import TableNames
from pillarbox.testing.clock import VirtualClock
from pillarbox.testing.recorded import RecordAssertions, RecordedEvents


class CapturedOutbox(RecordAssertions):
    """What was recorded while its `with` block runs; the fixture `captured_outbox` of pytest is one.

    Its own assertions check the events that were committed in memory; `read(connection).assert_recorded(…)` checks
    those in the tables that a connection sees.
    """

    def __init__(self, *, clock: VirtualClock | None = None) -> None:
        """clock: the time in the memory store; None: a new virtual clock."""
        self.clock = clock or VirtualClock()
        self.store = MemoryStore(clock=self.clock, on_commit=self._committed)
        self._recordings: list[Recording] = []
        self._in_memory: set[tuple[str, str]] = set()
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        self._opened.enter_context(listening(self._recordings.append))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def transaction(self) -> MemoryTransaction:
        """A transaction in memory, to pass to the code under test: `with captured.transaction() as connection:`."""
        return self.store.transaction()

    def record(self, *events: Event) -> list[str]:
        """Record events in a transaction in memory and commit it: what a handler under test is to receive."""
        with self.transaction() as transaction:
            return Outbox().record(transaction, *events)

    def copy(self, recorded: RecordedEvents) -> None:
        """Commit events that were read from a database in memory, too, so that a memory relay delivers them."""
        rows = [row for row in recorded.rows if _identity(row) not in self._in_memory]
        with self.transaction() as transaction:
            transaction.append_rows(rows, ignore_duplicates=False)

    @property
    def events(self) -> RecordedEvents:
        """The events that were committed in memory.

        Raises ConfigurationError if others were recorded on a connection to a database: their transaction may have been
        rolled back.
        """
        rows = self._rows()
        for recording in self._recordings:
            if not isinstance(recording.connection, MemoryTransaction):
                if all(_identity(row) in self._in_memory for row in recording.rows):
                    continue
                kind = type(recording.connection)
                raise ConfigurationError(
                    f"{recording.rows[0].event_type} was recorded on a {kind.__module__}.{kind.__qualname__}, and only "
                    "the database knows whether it was rolled back; call captured_outbox.read(connection), or "
                    "await captured_outbox.aread(connection), and assert on the result"
                )
        return self._seen(rows, {row.event_id for row in rows if _identity(row) in self._in_memory})

    def read(self, connection: Recordable) -> RecordedEvents:
        """The captured events that this connection sees: its own uncommitted ones, and those that others committed.

        connection: whatever `record` accepts: a connection or a session in a transaction, an engine, a pool.
        A store without history deletes an event when it is delivered; the event is not seen then.
        Raises NotInTransactionError if no transaction is open on the connection.
        """
        rows, instead = self._rows(), "await captured_outbox.aread(…)"
        with _reading("read"):
            seen = connections.run(connection, self._lookup, instead=instead, own_transaction=True)
        return self._seen(rows, seen)

    async def aread(self, connection: AsyncRecordable) -> RecordedEvents:
        """`read` for connections that are awaited."""
        rows, instead = self._rows(), "captured_outbox.read(…)"
        with _reading("aread"):
            seen = await connections.arun(connection, self._lookup, instead=instead, own_transaction=True)
        return self._seen(rows, seen)

    def _committed(self, messages: Sequence[Message]) -> None:
        self._in_memory.update(message.identity for message in messages)

    def _rows(self) -> list[EventRow]:
        """What was recorded, rolled back or not, each event once."""
        rows = {_identity(row): row for recording in self._recordings for row in recording.rows}
        return list(rows.values())

    def _lookup(self, dialect: str) -> Steps[set[str]]:
        seen: set[str] = set()
        captured: dict[TableNames, set[str]] = {}
        for recording in self._recordings:
            captured.setdefault(recording.tables, set()).update(row.event_id for row in recording.rows)
        for tables, event_ids in captured.items():
            names = dialects.find(dialect).names(tables)
            statement = StatementSet(names, load_statements("pillarbox.testing", "recorded")).get("recorded")
            for event_id in sorted(event_ids):
                if (yield BoundStatement(statement, (event_id,))):
                    seen.add(event_id)
        return seen

    def _seen(self, rows: Sequence[EventRow], event_ids: set[str]) -> RecordedEvents:
        return RecordedEvents(
            [row for row in rows if row.event_id in event_ids],
            unseen=[row for row in rows if row.event_id not in event_ids],
        )


@contextmanager
def _reading(method: str) -> Iterator[None]:
    """Say of a connection without a transaction what it means for a test, which only reads."""
    try:
        yield
    except NotInTransactionError as error:
        raise NotInTransactionError(
            f"captured_outbox.{method}(…) needs a connection in a transaction, as record does: begin one around the "
            "call (Django: `with transaction.atomic():`), or pass an engine or a pool"
        ) from error


def _identity(row: EventRow) -> tuple[str, str]:
    return row.event_id, row.destination
