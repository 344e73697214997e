"""The PostgreSQL store: a bundle of facets over connections of its own."""

from __future__ import annotations

from functools import partial

from pillarbox.admin.admin import Admin
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.lane import LANES
from pillarbox.core.store import EVERY_REQUEST, Capabilities, LedgerKind
from pillarbox.database_urls import plain_url
from pillarbox.dialects.postgres import DIALECT
from pillarbox.plugins import StoreOptions
from pillarbox.stores.admin.admin import SqlAdmin
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.destinations import PostgresDestinations
from pillarbox.stores.postgres.diagnosis import TIMEOUTS, PostgresDiagnosis
from pillarbox.stores.postgres.engine import PostgresEngine
from pillarbox.stores.postgres.lanes import PostgresLanes
from pillarbox.stores.postgres.ledger import ledger_of
from pillarbox.stores.postgres.messages import PostgresMessages
from pillarbox.stores.postgres.pruning import PostgresPruning
from pillarbox.stores.postgres.schema import PostgresSchema
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.postgres.statistics import PostgresStatistics
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

    Opens nothing before it is first used. Reads, writes, coordination of relays, and notifications
    each have one connection, so that a slow read never delays a heartbeat; none of their statements takes longer than
    `statement_timeout`. Raises ConfigurationError for a bad URL or name.
    """

    capabilities = Capabilities(
        lanes=LANES,
        many_writers=True,
        survives_restart=True,
        partitions=True,
        admin=True,
        listings=True,
        requests=EVERY_REQUEST,
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
        url = plain_url(url)
        self._clone = partial(
            PostgresStore,
            url,
            tables=tables,
            max_payload=max_payload,
            statement_timeout=statement_timeout,
        )
        self._history = history
        self._ledger: LedgerKind = ledger
        statements = PostgresStatements(DIALECT.names(tables))
        longest = seconds(statement_timeout, field="statement_timeout")
        bound, client_timeout = f"{longest * 1000:.0f}ms", longest + GRACE
        reading, writing = (
            PostgresStoreConnection(
                url, statement_timeout=bound, answer_within=client_timeout, internal=True, **KEPT_PLANS
            )
            for _ in range(2)
        )
        coordination = PostgresStoreConnection(url, statement_timeout=bound, answer_within=client_timeout)
        listening = PostgresStoreConnection(url, statement_timeout=bound)
        # Opened only for lists and replays: which plan is good depends on the filter.
        listing = PostgresStoreConnection(
            url, plan_cache_mode="force_custom_plan", statement_timeout=bound, answer_within=client_timeout
        )
        # Opened only for the checks of the server.
        diagnosis_1, diagnosis_2 = (
            PostgresStoreConnection(url, answer_within=GRACE * 2, internal=True, **TIMEOUTS) for _ in range(2)
        )
        self._connections = (reading, writing, coordination, listening, listing, diagnosis_1, diagnosis_2)
        self.lanes = PostgresLanes(coordination, statements)
        self.messages = PostgresMessages(reading, statements, statement_timeout=longest)
        self.writes = PostgresWrites(writing, statements, history=history, ledger=ledger is True)
        self.ledger = ledger_of(ledger, history=history, reading=reading, writing=writing, statements=statements)
        self.destinations = PostgresDestinations(coordination, statements)
        self.statistics = PostgresStatistics(coordination, statements)
        self.admin: Admin = SqlAdmin(
            PostgresEngine(coordination, statements), listing=PostgresEngine(listing, statements)
        )
        self.pruning = PostgresPruning(coordination, statements)
        self.wakeup = PostgresWakeup(listening, statements)
        self.schema = PostgresSchema(coordination, statements, max_payload=max_payload)
        self.diagnosis = PostgresDiagnosis(diagnosis_1, diagnosis_2, statements, self.schema, history=history)

    def clone(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> PostgresStore:
        return self._clone(
            history=self._history if history is None else history, ledger=self._ledger if ledger is None else ledger
        )

    async def aclose(self) -> None:
        for connection in self._connections:
            await connection.aclose()
