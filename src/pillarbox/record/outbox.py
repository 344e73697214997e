"""The outbox: `record` for sync connections, `arecord` for async ones.

All events are validated and encoded before the first statement, and inserted completely or not at all. In the caller's
transaction nothing is committed. For an engine, a session factory or a pool, the events are committed in their own
transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import NamedTuple, TypeGuard

from pillarbox import connections, dialects
from pillarbox.connections.accepted import AsyncRecordable, Recordable
from pillarbox.core.errors import presentable
from pillarbox.core.event import Event, EventsRecorded, RecordObserver
from pillarbox.core.payload import Size, payload_limit
from pillarbox.core.rows import AsyncEventTransaction, EventRow, EventTransaction
from pillarbox.dialects import Appender, AppendOptions, Dialect
from pillarbox.record.listeners import Recording, listeners
from pillarbox.record.options import Duplicate, RecordOptions
from pillarbox.record.registry import EventTypes
from pillarbox.record.rows import check_distinct, row_of
from pillarbox.record.write_errors import explain
from pillarbox.settings.shared import WakeupMode
from pillarbox.statements import Names
from pillarbox.table_names import DEFAULT_TABLES, TableNames


class Outbox:
    """Records events. Holds no connection; one instance serves a whole application, from any thread.

    Raises ConfigurationError for an invalid setting.
    """

    def __init__(
        self,
        *,
        tables: TableNames = DEFAULT_TABLES,
        registry: EventTypes | None = None,
        duplicate: Duplicate = RecordOptions.duplicate,
        wakeup: WakeupMode = RecordOptions.wakeup,
        strict_order: bool = RecordOptions.strict_order,
        max_payload: Size = RecordOptions.max_payload,
        observers: Sequence[RecordObserver] = (),
    ) -> None:
        """
        tables: prefix and schema of the tables: the same value as for the store and the inbox.
        registry: event types to validate against; None: every type is valid.
        duplicate: for an id that is pending already: "error" raises, "ignore" skips the event.
        wakeup: "notify" wakes an idle relay at commit, "none" does not: for two-phase commit.
        strict_order: writers of one key wait for each other until they commit (SQLite has one writer anyway).
        max_payload: bytes, or text such as "1 MiB"; at most 64 MiB.
        observers: called with the recorded events inside the transaction; they must neither raise nor block.
        """
        RecordOptions(duplicate=duplicate, wakeup=wakeup, strict_order=strict_order, max_payload=max_payload)  # checks
        self._tables = tables
        self._registry = registry
        self._ignore_duplicates = duplicate == "ignore"
        self._max_payload = payload_limit(max_payload)
        self._observers = tuple(observers)
        self._append_options = AppendOptions(
            ignore_duplicates=self._ignore_duplicates, notify=wakeup == "notify", strict_order=strict_order
        )
        self._writers: dict[str, _OutboxWriter] = {}

    @classmethod
    def from_settings(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        registry: EventTypes | None = None,
        observers: Sequence[RecordObserver] = (),
    ) -> Outbox:
        """An outbox with `[store]` and `[record]` of a settings file and of the environment variables.

        path: the file; None: the one that PILLARBOX_CONFIG names, else `pillarbox.toml` in the current folder if there
            is one.
        environment: variables instead of those of the process.

        Raises ConfigurationError, which names every invalid setting as the file or the variable names it.
        """
        from pillarbox.ops import from_settings

        return from_settings.outbox(path, environment=environment, registry=registry, observers=observers)

    def record(self, connection: Recordable, *events: Event) -> list[str]:
        """Record events in the connection's transaction; returns their ids, in order.

        The connection is a SQLAlchemy Session or Connection, a psycopg, psycopg2 or PyMySQL connection or a
        sqlite3.Connection.
        For a SQLAlchemy Engine or sessionmaker or a psycopg2 pool, the events are committed in their own transaction.

        Raises RecordError for an invalid event or connection, NotInTransactionError if the insert would commit on its
        own, DuplicateEventError for an id that is pending already, SchemaError if the tables are missing. Other
        exceptions of the driver pass unchanged. An id that was delivered already is accepted; `store.ledger` decides
        whether the relay sends it again.
        """
        rows = self._rows(events)
        if not rows:
            return []
        if _appends(connection):
            connection.append_rows(rows, ignore_duplicates=self._ignore_duplicates)
        else:
            instead = "await outbox.arecord(…)"
            connections.run(
                connection, lambda dialect: self._steps(dialect, rows), instead=instead, own_transaction=True
            )
        return self._recorded(connection, events, rows)

    async def arecord(self, connection: AsyncRecordable, *events: Event) -> list[str]:
        """`record` for a SQLAlchemy AsyncSession or AsyncConnection, a psycopg AsyncConnection, asyncpg or asyncmy.

        For a SQLAlchemy AsyncEngine or async_sessionmaker or a Pool of asyncpg or asyncmy, the events are committed in
        their own transaction.
        """
        rows = self._rows(events)
        if not rows:
            return []
        if _appends(connection):
            connection.append_rows(rows, ignore_duplicates=self._ignore_duplicates)
        elif _appends_awaited(connection):
            await connection.aappend_rows(rows, ignore_duplicates=self._ignore_duplicates)
        else:
            instead = "outbox.record(…)"
            await connections.arun(
                connection, lambda dialect: self._steps(dialect, rows), instead=instead, own_transaction=True
            )
        return self._recorded(connection, events, rows)

    def _rows(self, events: tuple[Event, ...]) -> list[EventRow]:
        rows = [row_of(event, registry=self._registry, max_payload=self._max_payload) for event in events]
        if len(rows) > 1 and not self._ignore_duplicates:
            check_distinct(rows)
        return rows

    def _recorded(self, connection: object, events: tuple[Event, ...], rows: list[EventRow]) -> list[str]:
        for listener in listeners:
            listener(Recording(connection, self._tables, rows))
        if self._observers:
            recorded = EventsRecorded(events=events)
            for observer in self._observers:
                with suppress(Exception):  # an observer that raises must not fail the caller's transaction
                    observer(recorded)
        return [event.event_id for event in events]

    def _steps(self, name: str, rows: list[EventRow]) -> connections.Steps[None]:
        if (writer := self._writers.get(name)) is None:
            dialect = dialects.find(name)
            names = dialect.names(self._tables)
            appender = dialect.appender(dialect.statements(names), self._append_options)
            writer = self._writers[name] = _OutboxWriter(dialect, names, appender)
        try:
            yield from writer.appender.steps(rows)
        except Exception as error:
            if (explained := explain(error, rows, writer.dialect, writer.names)) is None:
                raise
            raise explained from presentable(error)


class _OutboxWriter(NamedTuple):
    """How this outbox appends events in one dialect."""

    dialect: Dialect
    names: Names
    appender: Appender


def _appends(connection: object) -> TypeGuard[EventTransaction]:
    """Checks the method only; `isinstance` with a protocol would take longer than the rest of `record`."""
    return hasattr(type(connection), "append_rows")


def _appends_awaited(connection: object) -> TypeGuard[AsyncEventTransaction]:
    return hasattr(type(connection), "aappend_rows")
