"""The PostgreSQL store: a bundle of facets over connections of its own."""

from __future__ import annotations

from functools import partial

from pillarbox.core.clock import Duration, seconds
from pillarbox.core.lane import LANES
from pillarbox.core.store import EVERY_REQUEST, Capabilities, LedgerKind
from pillarbox.plugins import StoreOptions
from pillarbox.stores.admin.admin import SqlAdmin
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.destinations import PostgresDestinations
from pillarbox.stores.postgres.diagnosis import TIMEOUTS, PostgresDiagnosis
from pillarbox.stores.postgres.dialect import PostgresDialect
from pillarbox.stores.postgres.lanes import PostgresLanes
from pillarbox.stores.postgres.ledger import ledger_of
from pillarbox.stores.postgres.messages import PostgresMessages
from pillarbox.stores.postgres.schema import PostgresSchema
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.postgres.statistics import PostgresStatistics
from pillarbox.stores.postgres.upkeep import PostgresUpkeep
from pillarbox.stores.postgres.wakeup import PostgresWakeup
from pillarbox.stores.postgres.writes import PostgresWrites
from pillarbox.table_names import TableNames

KEPT_PLANS = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off"}
"""One plan for each statement, by the indexes made for it, whatever the tables hold when it is made: a plan made for an
empty table would otherwise read all of it, and sort it, once it is full."""
GRACE = 5.0
"""Seconds to wait for a response after the timeout of the server."""


class PostgresStore:
    """Messages in PostgreSQL 14 or newer.

    Opens nothing before it is first used. Reads, writes, everything of the relay's own life, and notifications
    each have one connection, so that a slow read never delays a heartbeat; none of their statements takes longer than
    `statement_timeout`. Raises ConfigurationError for a bad URL or name.
    """

    capabilities = Capabilities(
        lanes=LANES, many_writers=True, survives_restart=True, partitions=True, admin=True, requests=EVERY_REQUEST
    )

    def __init__(
        self,
        url: str,
        *,
        tables: TableNames = StoreOptions.tables,
        history: bool = StoreOptions.history,
        ledger: LedgerKind = StoreOptions.ledger,
        max_payload: int = StoreOptions.max_payload,
        statement_timeout: Duration = StoreOptions.statement_timeout,
    ) -> None:
        self._beside = partial(
            PostgresStore,
            url,
            tables=tables,
            max_payload=max_payload,
            statement_timeout=statement_timeout,
        )
        self._history = history
        self._ledger: LedgerKind = ledger
        statements = PostgresStatements(tables.postgres)
        longest = seconds(statement_timeout, field="statement_timeout")
        bound, client_timeout = f"{longest * 1000:.0f}ms", longest + GRACE
        reading, writing = (
            Connection(url, statement_timeout=bound, answer_within=client_timeout, internal=True, **KEPT_PLANS)
            for _ in range(2)
        )
        living = Connection(url, statement_timeout=bound, answer_within=client_timeout)
        listening = Connection(url, statement_timeout=bound)
        # Opened only for lists and replays: which plan is good depends on the filter.
        listing = Connection(
            url, plan_cache_mode="force_custom_plan", statement_timeout=bound, answer_within=client_timeout
        )
        # Opened only for the checks of the server.
        asking, asking_too = (Connection(url, answer_within=GRACE * 2, internal=True, **TIMEOUTS) for _ in range(2))
        self._connections = (reading, writing, living, listening, listing, asking, asking_too)
        self.lanes = PostgresLanes(living, statements)
        self.messages = PostgresMessages(reading, statements)
        self.writes = PostgresWrites(writing, statements, history=history, ledger=ledger is True)
        self.ledger = ledger_of(ledger, history=history, reading=reading, writing=writing, statements=statements)
        self.destinations = PostgresDestinations(living, statements)
        self.statistics = PostgresStatistics(living, statements)
        self.admin = SqlAdmin(PostgresDialect(living, statements), listing=PostgresDialect(listing, statements))
        self.upkeep = PostgresUpkeep(living, statements)
        self.wakeup = PostgresWakeup(listening, statements)
        self.schema = PostgresSchema(living, statements, max_payload=max_payload)
        self.diagnosis = PostgresDiagnosis(asking, asking_too, statements, self.schema, history=history)

    def beside(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> PostgresStore:
        return self._beside(
            history=self._history if history is None else history, ledger=self._ledger if ledger is None else ledger
        )

    async def aclose(self) -> None:
        for connection in self._connections:
            await connection.aclose()
