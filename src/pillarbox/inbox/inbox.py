"""The inbox as a consumer sees it: each event is admitted once, in the transaction of its effect.

The receipt is inserted first, never looked up beforehand, so that of two who come at once one waits and then learns
that it is done. Nothing is ever committed here: a rollback forgets the receipt with the effect.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeGuard

from pillarbox import connections
from pillarbox.connections.accepted import Admitting, AsyncAdmitting
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.errors import ConfigurationError, presentable
from pillarbox.core.row import INBOX_RETENTION, REDELIVERY_WINDOW, ConsumerStatistics, InboxRecord, InProcessInbox
from pillarbox.core.store import Retention, Store
from pillarbox.inbox.errors import RECORDS, STATISTICS, Deed, explain
from pillarbox.inbox.once import Once
from pillarbox.inbox.records import Identified, check_consumer, record_of
from pillarbox.pruning import prune_in_batches
from pillarbox.statements import Names, StatementSet, load


class Inbox:
    """A consumer's guard against repeats. Holds no connection; one instance serves any number of consumers.

    Raises ConfigurationError for a setting that is wrong, and for receipts that would go before the last repeat comes.
    """

    def __init__(
        self,
        *,
        prefix: str = "outbox_",
        schema: str = "public",
        retention: Duration | None = INBOX_RETENTION,
        redelivery: Duration = REDELIVERY_WINDOW,
    ) -> None:
        """
        prefix, schema: where the tables are, as in `Outbox`; the schema concerns PostgreSQL only.
        retention: how long `prune` keeps receipts; None: for ever.
        redelivery: the longest time after which an event may still come again.
        """
        if not schema:
            raise ConfigurationError('schema is empty; name the PostgreSQL schema, usually "public"')
        self._names = Names(prefix=prefix, schema=schema)
        self._retention = _checked(retention, redelivery)
        statements = {
            "postgresql": StatementSet(self._names, load("pillarbox.inbox", "postgres")),
            "sqlite": StatementSet(Names(prefix=prefix), load("pillarbox.inbox", "sqlite")),
        }
        self._admit = {dialect: found.get("admit") for dialect, found in statements.items()}
        self._count = {dialect: found.get("count_results") for dialect, found in statements.items()}

    def admit(self, connection: Admitting, consumer: str, event: str | Identified) -> bool:
        """Return True if the event is new to the consumer, False if the consumer has processed it already.

        A new event counts as processed once the connection's transaction commits. The event is an id, or anything that
        has an `event_id`. The connection is a SQLAlchemy Session or Connection, a psycopg or psycopg2
        connection, a sqlite3.Connection or a transaction of the memory store.
        Raises InvalidConnectionError for any other connection, NotInTransactionError if the receipt would commit by
        itself, ConfigurationError for a consumer's name and InboxError for an id that is none, SchemaError if the table
        is not there. Whatever else the driver raises passes as it is.
        """
        receipt = record_of(consumer, event)
        if _is_in_process(connection):
            return connection.admit_record(receipt)
        return connections.run(
            connection, lambda dialect: self._admitting(dialect, receipt), instead="await inbox.aadmit(…)"
        )

    async def aadmit(self, connection: AsyncAdmitting, consumer: str, event: str | Identified) -> bool:
        """`admit` for a SQLAlchemy AsyncSession or AsyncConnection, a psycopg AsyncConnection or asyncpg."""
        receipt = record_of(consumer, event)
        if _is_in_process(connection):
            return connection.admit_record(receipt)
        return await connections.arun(
            connection, lambda dialect: self._admitting(dialect, receipt), instead="inbox.admit(…)"
        )

    def once(self, consumer: str) -> Once:
        """Decorate a function `(connection, event, …)`, sync or async: a repeat is answered None without calling it.

        Raises ConfigurationError for a name that no consumer can have.
        """
        check_consumer(consumer)
        return Once(consumer, admit=self.admit, aadmit=self.aadmit)

    @contextmanager
    def admission(self, connection: Admitting, consumer: str, event: str | Identified) -> Iterator[bool]:
        """`admit` as a block around the effect: `with inbox.admission(session, "billing", event) as first:`."""
        yield self.admit(connection, consumer, event)

    @asynccontextmanager
    async def aadmission(
        self, connection: AsyncAdmitting, consumer: str, event: str | Identified
    ) -> AsyncIterator[bool]:
        """`aadmit` as a block around the effect."""
        yield await self.aadmit(connection, consumer, event)

    def add_statistics(self, connection: Admitting, statistics: ConsumerStatistics) -> None:
        """Add to the consumer statistics of this hour; a `Consumer` does so by itself. Raises as `admit` does."""
        if _is_in_process(connection):
            connection.add_statistics(statistics)
        else:
            connections.run(
                connection,
                lambda dialect: self._counting(dialect, statistics),
                instead="await inbox.aadd_statistics(…)",
            )

    async def aadd_statistics(self, connection: AsyncAdmitting, statistics: ConsumerStatistics) -> None:
        """`add_statistics` for connections that are awaited."""
        if _is_in_process(connection):
            connection.add_statistics(statistics)
        else:
            await connections.arun(
                connection, lambda dialect: self._counting(dialect, statistics), instead="inbox.add_statistics(…)"
            )

    async def prune(self, store: Store) -> int:
        """Drop receipts and tallies older than the retention, in bites; returns how many went.

        The store is one on the same tables. A relay on them does this by itself, by its own setting.
        """
        if self._retention is None:
            return 0
        return sum([gone async for gone in prune_in_batches(store.upkeep, Retention(receipts=self._retention))])

    def _admitting(self, dialect: connections.Dialect, receipt: InboxRecord) -> connections.Steps[bool]:
        return bool((yield from self._explained(self._admit[dialect], receipt, RECORDS)))

    def _counting(self, dialect: connections.Dialect, statistics: ConsumerStatistics) -> connections.Steps[None]:
        yield from self._explained(self._count[dialect], statistics, STATISTICS)

    def _explained(
        self, sql: str, row: InboxRecord | ConsumerStatistics, deed: Deed
    ) -> connections.Steps[connections.Rows]:
        try:
            return (yield connections.Statement(sql, row))
        except Exception as error:
            if (refusal := explain(error, self._names, deed)) is None:
                raise
            raise refusal from presentable(error)


def _is_in_process(connection: object) -> TypeGuard[InProcessInbox]:
    return hasattr(type(connection), "admit_record")


def _checked(retention: Duration | None, redelivery: Duration) -> float | None:
    longest = seconds(redelivery, field="redelivery")
    if retention is None:
        return None
    kept = seconds(retention, field="retention")
    if kept <= longest:
        raise ConfigurationError(
            f"retention {retention} must be longer than redelivery {redelivery}: an event that comes again after its "
            "receipt is gone is handled again; raise retention, or lower redelivery if nothing is sent again that late"
        )
    return kept
