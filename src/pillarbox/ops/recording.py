"""Recording for people at a shell: a transaction of their own for each batch, on whatever store the settings name."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Protocol

from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.event import Event
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import make_outbox


class Recorder(Protocol):
    """A connection to record on, opened when it is first needed."""

    async def record(self, events: Sequence[Event]) -> None:
        """Record these and commit. Raises RecordError, SchemaError or StoreUnavailableError, and then nothing is
        there."""
        ...

    async def aclose(self) -> None: ...


def recorder_of(settings: Settings) -> Recorder:
    """How to record on the store that the settings name."""
    return SqliteRecorder(settings) if settings.store.url.startswith("sqlite:") else PostgresRecorder(settings)


class PostgresRecorder:
    def __init__(self, settings: Settings) -> None:
        from pillarbox.stores.postgres.connection import Connection

        self._outbox = make_outbox(settings)
        # A producer like any other: the table's limits apply.
        self._connection = Connection(settings.store.url, internal=False)

    async def record(self, events: Sequence[Event]) -> None:
        async with self._connection.open() as driver, driver.transaction():
            await self._outbox.arecord(driver, *events)

    async def aclose(self) -> None:
        await self._connection.aclose()


class SqliteRecorder:
    def __init__(self, settings: Settings) -> None:
        from pillarbox.stores.sqlite.store import path_of

        self._outbox = make_outbox(settings)
        self._path = path_of(settings.store.url)
        self._connection: sqlite3.Connection | None = None

    async def record(self, events: Sequence[Event]) -> None:
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(self._path, isolation_level="IMMEDIATE")
            with self._connection:
                self._outbox.record(self._connection, *events)
        except sqlite3.Error as error:
            raise StoreUnavailableError(
                f"SQLite did not do it on {self._path} ({type(error).__name__}: {error})"
            ) from error

    async def aclose(self) -> None:
        if self._connection is not None:
            self._connection.close()
