"""The SQLite store: a bundle of facets over one connection on a thread of its own."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from pillarbox.admin.admin import Admin
from pillarbox.core.clock import Clock, Duration, SystemClock, seconds
from pillarbox.core.errors import ConfigurationError
from pillarbox.core.store import EVERY_REQUEST, Capabilities, LedgerKind
from pillarbox.database_urls import plain_url
from pillarbox.dialects.sqlite import DIALECT
from pillarbox.plugins import StoreOptions
from pillarbox.stores.admin.admin import SqlAdmin
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.destinations import SqliteDestinations
from pillarbox.stores.sqlite.diagnosis import SqliteDiagnosis
from pillarbox.stores.sqlite.engine import SqliteEngine
from pillarbox.stores.sqlite.lanes import SqliteLanes
from pillarbox.stores.sqlite.ledger import ledger_of
from pillarbox.stores.sqlite.messages import SqliteMessages
from pillarbox.stores.sqlite.pruning import SqlitePruning
from pillarbox.stores.sqlite.schema import SqliteSchema
from pillarbox.stores.sqlite.sessions import RelayLocks
from pillarbox.stores.sqlite.statements import SqliteStatements
from pillarbox.stores.sqlite.statistics import SqliteStatistics
from pillarbox.stores.sqlite.wakeup import SqliteArrivals, SqliteWakeup
from pillarbox.stores.sqlite.writes import SqliteWrites
from pillarbox.table_names import TableNames

_SCHEME = "sqlite:///"


class SqliteStore:
    """Messages in a file of SQLite 3.35 or newer: `sqlite:///relative.db`, `sqlite:////absolute.db` or a path.

    Opens nothing before it is first used. Raises ConfigurationError for a bad URL or name, for a database in memory
    (no producer could write to it), and for a SQLite that is too old.
    """

    capabilities = Capabilities(
        lanes=1,
        many_writers=False,
        survives_restart=True,
        partitions=False,
        admin=True,
        listings=True,
        requests=EVERY_REQUEST,
    )

    def __init__(
        self,
        url_or_path: str | os.PathLike[str],
        *,
        tables: TableNames = StoreOptions.tables,
        history: bool = StoreOptions.history,
        ledger: LedgerKind = StoreOptions.ledger,
        max_payload: int = StoreOptions.max_payload,
        busy_timeout: Duration = "5s",
        clock: Clock | None = None,
    ) -> None:
        """clock: its `monotonic()` counts the leases, the same for all processes that use the file."""
        path = path_of(url_or_path)
        clock = clock or SystemClock()
        self._clone = partial(
            SqliteStore, path, tables=tables, max_payload=max_payload, busy_timeout=busy_timeout, clock=clock
        )
        self._history = history
        self._ledger: LedgerKind = ledger
        statements = SqliteStatements(DIALECT.names(tables))
        arrivals = SqliteArrivals(statements)
        connection = SqliteStoreConnection(
            path, statements, busy_timeout=seconds(busy_timeout, field="busy_timeout"), clock=clock
        )
        self._connection = connection
        self._locks = RelayLocks(path)
        self.lanes = SqliteLanes(connection, statements, self._locks)
        self.messages = SqliteMessages(connection, statements, arrivals)
        self.writes = SqliteWrites(connection, statements, history=history, ledger=ledger is True)
        self.ledger = ledger_of(ledger, history=history, connection=connection, statements=statements)
        self.destinations = SqliteDestinations(connection, statements)
        dialect = SqliteEngine(connection, statements)
        self.statistics = SqliteStatistics(connection, statements)
        self.admin: Admin = SqlAdmin(dialect, listing=dialect)
        self.pruning = SqlitePruning(connection, statements)
        self.wakeup = SqliteWakeup(connection, statements, arrivals)
        self.schema = SqliteSchema(connection, statements, max_payload=max_payload)
        self.diagnosis = SqliteDiagnosis(path, connection, statements, self.schema)

    def clone(self, *, history: bool | None = None, ledger: LedgerKind | None = None) -> SqliteStore:
        return self._clone(
            history=self._history if history is None else history, ledger=self._ledger if ledger is None else ledger
        )

    async def aclose(self) -> None:
        await self._connection.aclose()
        self._locks.close()


def path_of(url_or_path: str | os.PathLike[str]) -> Path:
    """The file that a URL or a path names, wherever the process goes afterwards. Raises ConfigurationError."""
    text = plain_url(os.fspath(url_or_path))
    if text.startswith("sqlite:"):
        if not text.startswith(_SCHEME):
            raise ConfigurationError(
                "the store's URL needs three slashes, as in sqlite:///shop.db, or four for an absolute path"
            )
        text = text.removeprefix(_SCHEME)
        if "?" in text:
            raise ConfigurationError(
                f"the store's URL has options ({text[text.index('?') :]}), and a file of SQLite takes none here: leave "
                "them out, or give a path instead of a URL if the file is really called so"
            )
    elif "://" in text:
        raise ConfigurationError("the store's URL must begin with sqlite:///, for example sqlite:///shop.db")
    if text in ("", ":memory:"):
        raise ConfigurationError(
            "a SQLite database in memory belongs to one connection, so no producer could record into it: "
            "name a file, or use memory://"
        )
    return Path(text).absolute()
