"""The outbox: `record` for sync connections, `arecord` for async ones.

All events are validated and encoded before the first statement, and inserted by one INSERT. In the caller's transaction
nothing is committed. For an engine, a session factory or a pool, the events are committed in their own transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import TypeGuard

from pillarbox import connections
from pillarbox.connections.accepted import AsyncRecordable, Recordable
from pillarbox.core.errors import presentable
from pillarbox.core.event import Event, EventsRecorded, RecordObserver
from pillarbox.core.row import InProcessTransaction, Row
from pillarbox.core.text import Size, payload_limit
from pillarbox.record.options import Duplicate, RecordOptions
from pillarbox.record.postgres import PostgresAppend
from pillarbox.record.refusals import check_distinct, explain
from pillarbox.record.registry import EventTypes
from pillarbox.record.rows import row_of
from pillarbox.record.sqlite import SqliteAppend
from pillarbox.settings.shared import Wakeup
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
        wakeup: Wakeup = RecordOptions.wakeup,
        strict_order: bool = False,
        max_payload: Size = RecordOptions.max_payload,
        observers: Sequence[RecordObserver] = (),
    ) -> None:
        """
        tables: prefix and schema of the tables: the same value as for the store and the inbox.
        registry: event types to validate against; None: every type is valid.
        duplicate: for an id that is pending already: "error" raises, "ignore" skips the event.
        wakeup: "notify" wakes an idle relay at commit, "none" does not: for two-phase commit.
        strict_order: writers of one key wait for each other until they commit (PostgreSQL; SQLite has one writer).
        max_payload: bytes, or text such as "1 MiB"; at most 64 MiB.
        observers: called with the recorded events inside the transaction; they must neither raise nor block.
        """
        RecordOptions(duplicate=duplicate, wakeup=wakeup, max_payload=max_payload)  # checks them
        self._names = tables.postgres
        self._registry = registry
        self._ignore_duplicates = duplicate == "ignore"
        self._max_payload = payload_limit(max_payload)
        self._observers = tuple(observers)
        self._postgres = PostgresAppend(
            self._names,
            ignore_duplicates=self._ignore_duplicates,
            notify=wakeup == "notify",
            strict_order=strict_order,
        )
        self._sqlite = SqliteAppend(tables.sqlite, ignore_duplicates=self._ignore_duplicates)

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

        The connection is a SQLAlchemy Session or Connection, a psycopg or psycopg2 connection or a sqlite3.Connection.
        For a SQLAlchemy Engine or sessionmaker or a psycopg2 pool, the events are committed in their own transaction.

        Raises RecordError for an invalid event or connection, NotInTransactionError if the insert would commit on its
        own, DuplicateEventError for an id that is pending already, SchemaError if the tables are missing. Other
        exceptions of the driver pass unchanged. An id that was delivered already is accepted; `store.ledger` decides
        whether the relay sends it again.
        """
        rows = self._rows(events)
        if not rows:
            return []
        if _is_in_process(connection):
            connection.append_rows(rows, ignore_duplicates=self._ignore_duplicates)
        else:
            instead = "await outbox.arecord(…)"
            connections.run(
                connection, lambda dialect: self._steps(dialect, rows), instead=instead, own_transaction=True
            )
        return self._recorded(events)

    async def arecord(self, connection: AsyncRecordable, *events: Event) -> list[str]:
        """`record` for a SQLAlchemy AsyncSession or AsyncConnection, a psycopg AsyncConnection or asyncpg.

        For a SQLAlchemy AsyncEngine or async_sessionmaker or an asyncpg Pool, the events are committed in their own
        transaction.
        """
        rows = self._rows(events)
        if not rows:
            return []
        if _is_in_process(connection):
            connection.append_rows(rows, ignore_duplicates=self._ignore_duplicates)
        else:
            instead = "outbox.record(…)"
            await connections.arun(
                connection, lambda dialect: self._steps(dialect, rows), instead=instead, own_transaction=True
            )
        return self._recorded(events)

    def _rows(self, events: tuple[Event, ...]) -> list[Row]:
        rows = [row_of(event, registry=self._registry, max_payload=self._max_payload) for event in events]
        if len(rows) > 1 and not self._ignore_duplicates:
            check_distinct(rows)
        return rows

    def _recorded(self, events: tuple[Event, ...]) -> list[str]:
        if self._observers:
            recorded = EventsRecorded(events=events)
            for observer in self._observers:
                with suppress(Exception):  # an observer that raises must not fail the caller's transaction
                    observer(recorded)
        return [event.event_id for event in events]

    def _steps(self, dialect: connections.Dialect, rows: list[Row]) -> connections.Steps[None]:
        try:
            match dialect:
                case "postgresql":
                    yield from self._postgres.steps(rows)
                case "sqlite":
                    yield from self._sqlite.steps(rows)
        except Exception as error:
            if (explained := explain(error, rows, self._names)) is None:
                raise
            raise explained from presentable(error)


def _is_in_process(connection: object) -> TypeGuard[InProcessTransaction]:
    """Checks the method only; `isinstance` with a protocol would take longer than the rest of `record`."""
    return hasattr(type(connection), "append_rows")
