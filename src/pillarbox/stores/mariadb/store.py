"""The MariaDB store: a bundle of facets over connections of its own."""

from __future__ import annotations

from functools import partial

from pillarbox.admin.admin import Admin
from pillarbox.core.clock import Duration, seconds
from pillarbox.core.lane import LANES
from pillarbox.core.store import EVERY_REQUEST, Capabilities, LedgerKind
from pillarbox.database_urls import plain_url
from pillarbox.dialects.mariadb import DIALECT
from pillarbox.plugins import StoreOptions
from pillarbox.stores.admin.admin import SqlAdmin
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection
from pillarbox.stores.mariadb.destinations import MariaDBDestinations
from pillarbox.stores.mariadb.diagnosis import TIMEOUTS, MariaDBDiagnosis
from pillarbox.stores.mariadb.engine import MariaDBEngine
from pillarbox.stores.mariadb.lanes import MariaDBLanes
from pillarbox.stores.mariadb.ledger import ledger_of
from pillarbox.stores.mariadb.messages import MariaDBMessages
from pillarbox.stores.mariadb.pruning import MariaDBPruning
from pillarbox.stores.mariadb.schema import MariaDBSchema
from pillarbox.stores.mariadb.statements import MariaDBStatements
from pillarbox.stores.mariadb.statistics import MariaDBStatistics
from pillarbox.stores.mariadb.wakeup import MariaDBArrivals, MariaDBWakeup
from pillarbox.stores.mariadb.writes import MariaDBWrites
from pillarbox.table_names import TableNames

GRACE = 5.0
"""Seconds to wait for a response after the timeout of the server."""


class MariaDBStore:
    """Messages in MariaDB 10.6 or newer.

    Opens nothing before it is first used. Reads, writes, coordination of relays, and polling each have one connection,
    so that a slow read never delays a heartbeat; none of their statements takes longer than `statement_timeout`. Raises
    ConfigurationError for a bad URL or name.
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
            MariaDBStore, url, tables=tables, max_payload=max_payload, statement_timeout=statement_timeout
        )
        self._history = history
        self._ledger: LedgerKind = ledger
        statements = MariaDBStatements(DIALECT.names(tables))
        longest = seconds(statement_timeout, field="statement_timeout")
        opened = partial(
            MariaDBStoreConnection, url, answer_within=longest + GRACE, max_statement_time=f"{longest:.3f}"
        )
        reading, writing = opened(), opened(prepare=statements.get("create_settlement"))
        # Keys are binary columns: operators read them in statements that all engines share.
        coordination, polling, listing = opened(binary_texts=True), opened(), opened(binary_texts=True)
        # Opened only for the checks of the server.
        examining = MariaDBStoreConnection(url, answer_within=GRACE * 2, binary_texts=True, **TIMEOUTS)
        self._connections = (reading, writing, coordination, polling, listing, examining)
        arrivals = MariaDBArrivals(statements)
        self.lanes = MariaDBLanes(coordination, statements)
        self.messages = MariaDBMessages(reading, statements, arrivals)
        self.writes = MariaDBWrites(writing, statements, history=history, ledger=ledger is True)
        self.ledger = ledger_of(ledger, history=history, reading=reading, writing=writing, statements=statements)
        self.destinations = MariaDBDestinations(coordination, statements)
        self.statistics = MariaDBStatistics(coordination, statements)
        self.admin: Admin = SqlAdmin(
            MariaDBEngine(coordination, statements), listing=MariaDBEngine(listing, statements)
        )
        self.pruning = MariaDBPruning(polling, statements)
        self.wakeup = MariaDBWakeup(polling, arrivals)
        self.schema = MariaDBSchema(polling, statements)
        self.diagnosis = MariaDBDiagnosis(examining, statements, self.schema, history=history, max_payload=max_payload)

    def clone(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> MariaDBStore:
        return self._clone(
            history=self._history if history is None else history, ledger=self._ledger if ledger is None else ledger
        )

    async def aclose(self) -> None:
        for connection in self._connections:
            await connection.aclose()
