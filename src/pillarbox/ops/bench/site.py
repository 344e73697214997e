"""Where a benchmark works: tables and a queue of its own on the user's servers, removed whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import (
    ConfigurationError,
    PillarboxError,
    SchemaError,
    StoreUnavailableError,
    UnavailableError,
)
from pillarbox.ops.importing import installed
from pillarbox.ops.settings import Settings, StoreSettings
from pillarbox.ops.wiring import open_store
from pillarbox.statements import Names, StatementSet, load

if TYPE_CHECKING:
    from pillarbox.ops.bench.transport import WatchedRabbitMQ
    from pillarbox.ops.settings.transports import TransportSettings


class BenchRefused(PillarboxError):
    """The benchmark cannot have tables or a queue of its own; nothing is left of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The settings with a store of the benchmark's own, and the broker to send to, if there is one."""

    settings: Settings
    name: str
    """Of the queue; the names of tables begin with it."""
    transport: str = ""
    """The RabbitMQ of the settings; '' = a handler that does nothing."""

    @classmethod
    def of(cls, settings: Settings, transport: str = "") -> Site:
        """A site beside what the settings name. Raises ConfigurationError for a transport that is not there."""
        brokers = [name for name, given in settings.transports.items() if given.kind == "rabbitmq"]
        if transport and transport not in brokers:
            there = f"there are {', '.join(brokers)}" if brokers else "the settings have none"
            raise ConfigurationError(f"--transport {transport}: no RabbitMQ transport has this name; {there}")
        name = f"bench_{uuid4().hex[:8]}"
        config = replace(settings.relay.config, enabled=True, initial_delay="0s")
        own = replace(settings, store=_beside(settings.store, name), relay=replace(settings.relay, config=config))
        return cls(settings=own, name=name, transport=transport or next(iter(brokers), ""))

    @property
    def broker(self) -> TransportSettings:
        return self.settings.transports[self.transport]

    @property
    def flags(self) -> Mapping[str, str]:
        """Settings from which another process opens the same store."""
        store, record = self.settings.store, self.settings.record
        return {
            "store.url": store.url,
            "store.schema": store.schema,
            "store.prefix": store.prefix,
            "record.wakeup": record.wakeup,
        }

    @asynccontextmanager
    async def open_store(self) -> AsyncIterator[AdminStore]:
        """The store with its tables, which are dropped at the end. Raises BenchRefused."""
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self._drop_tables)
            store = open_store(self.settings.store, ledger=self.settings.store.ledger)
            await opened.enter_async_context(aclosing(store))
            try:
                await store.schema.apply()
            except (SchemaError, StoreUnavailableError) as error:
                raise BenchRefused(f"the benchmark cannot create tables of its own: {error}") from error
            yield store

    @asynccontextmanager
    async def open_broker(self) -> AsyncIterator[WatchedRabbitMQ]:
        """The broker with its queue, which is deleted at the end. Raises BenchRefused."""
        with installed():
            from pillarbox.ops.bench.transport import WatchedRabbitMQ, delete_queue
        async with AsyncExitStack() as opened:
            opened.push_async_callback(asyncio.to_thread, delete_queue, self.broker.url or "", self.name)
            broker = WatchedRabbitMQ(self.broker, self.name, send_timeout=self.settings.relay.config.send_timeout)
            await opened.enter_async_context(aclosing(broker))
            try:
                await broker.ping()
            except UnavailableError as error:
                raise BenchRefused(f"the benchmark cannot declare a queue of its own, {self.name}: {error}") from error
            yield broker

    async def _drop_tables(self) -> None:
        store = self.settings.store
        if store.url.startswith("sqlite:"):
            _remove_file(store.url)
            return
        from pillarbox.stores.postgres.connection import Connection

        names = Names(prefix=store.prefix, schema=store.schema)
        async with aclosing(Connection(store.url)) as connection:
            remove = StatementSet(names, load("pillarbox.ops.bench")).get("remove", schema=store.schema)
            await connection.execute(remove)


def _remove_file(url: str) -> None:
    from pillarbox.stores.sqlite.store import path_of

    for ending in ("", "-wal", "-shm", "-journal"):
        Path(f"{path_of(url)}{ending}").unlink(missing_ok=True)


def _beside(store: StoreSettings, name: str) -> StoreSettings:
    """The same database with other names; for SQLite another file beside it, because tables would make it grow."""
    if store.url.startswith("sqlite:"):
        return replace(store, url=f"{store.url}.{name}")
    return replace(store, prefix=f"{name}_outbox_")
