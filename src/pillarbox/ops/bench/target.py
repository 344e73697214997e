"""What a benchmark runs on: a temporary store and a temporary queue on the user's servers, deleted at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import (
    CommandError,
    ConfigurationError,
    SchemaError,
    StoreUnavailableError,
    UnavailableError,
)
from pillarbox.core.transport import Address
from pillarbox.ops.bench.timed_transport import TimedTransport
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import open_scratch_queue, open_store, with_scratch_store
from pillarbox.plugins import ScratchStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A transport with a temporary queue, and the address of the queue."""

    transport: TimedTransport
    address: Address


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkTarget:
    """The settings with a temporary store, and the transport to send to, if one supports temporary queues."""

    settings: Settings
    store: ScratchStore
    name: str
    """Of the queue; the names of tables begin with it."""
    transport: str = ""
    """Name of the transport in the settings; empty: a handler that does nothing."""

    @classmethod
    def of(cls, settings: Settings, transport: str = "") -> BenchmarkTarget:
        """Choose names other than those of the settings. Raises ConfigurationError if store or transport do not fit."""
        brokers = [name for name, given in settings.transports.items() if given.plugin.scratch_queues]
        if transport and transport not in brokers:
            known = f"use {' or '.join(brokers)}" if brokers else "the settings have none"
            raise ConfigurationError(f"--transport {transport}: no broker transport has this name; {known}")
        name = f"bench_{uuid4().hex[:8]}"
        own, scratch = with_scratch_store(settings, name)
        config = replace(settings.relay.config, enabled=True, initial_delay="0s")
        own = replace(own, relay=replace(settings.relay, config=config))
        return cls(settings=own, store=scratch, name=name, transport=transport or next(iter(brokers), ""))

    @property
    def variables(self) -> Mapping[str, str]:
        """Settings with which another process opens the same store, by environment variable."""
        store, record = self.settings.store, self.settings.record
        return {
            "PILLARBOX_STORE__URL": store.url,
            "PILLARBOX_STORE__SCHEMA": store.schema,
            "PILLARBOX_STORE__PREFIX": store.prefix,
            "PILLARBOX_RECORD__WAKEUP": record.wakeup,
        }

    @asynccontextmanager
    async def open_store(self) -> AsyncIterator[AdminStore]:
        """Open the temporary store with its tables, and drop them at the end. Raises CommandError."""
        async with AsyncExitStack() as opened:
            try:
                if found := await self.store.existing():
                    raise CommandError(f"{found[0]} exists already; nothing was changed; run it again")
                opened.push_async_callback(self.store.drop)
                store = open_store(self.settings.store, ledger=self.settings.store.ledger)
                await opened.enter_async_context(aclosing(store))
                await store.schema.apply()
            except (SchemaError, StoreUnavailableError) as error:
                raise CommandError(f"the benchmark cannot create its tables: {error}") from error
            yield store

    @asynccontextmanager
    async def open_broker(self) -> AsyncIterator[Broker]:
        """Open the transport with its temporary queue, and delete the queue at the end. Raises CommandError."""
        scratch = open_scratch_queue(self.settings, self.transport, self.name)
        async with AsyncExitStack() as opened:
            transport = TimedTransport(scratch.transport)
            await opened.enter_async_context(aclosing(transport))
            opened.push_async_callback(scratch.drop)
            try:
                await transport.ping()
            except UnavailableError as error:
                raise CommandError(f"the benchmark cannot declare its queue {self.name}: {error}") from error
            yield Broker(transport=transport, address=scratch.address)
