"""Adapters of another distribution: a transport that appends to files, and a store that is SQLite by another name.

A test copies this file into a distribution of its own; it imports public names only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from pillarbox.adapters import (
    Address,
    AdminStore,
    BrokerDeadLetters,
    ConfigurationError,
    Outgoing,
    Pace,
    Producer,
    ScratchQueue,
    ScratchStore,
    SendResult,
    StoreOptions,
    StorePlugin,
    Transport,
    TransportPlugin,
    UnavailableError,
)
from pillarbox.schemes import store_plugin


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalAddress(Address):
    name: str


class JournalTransport:
    pace = Pace(in_order=True)
    address_type = JournalAddress

    def __init__(self, folder: Path, ending: str) -> None:
        self._folder = folder
        self._ending = ending

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        return {event_type: JournalAddress(name=event_type)}

    async def send(self, batch: Sequence[Outgoing]) -> list[SendResult]:
        for one in batch:
            assert isinstance(one.address, JournalAddress)
            with (self._folder / f"{one.address.name}{self._ending}").open("ab") as journal:
                journal.write(one.body + b"\n")
        return [None] * len(batch)

    async def ping(self) -> None:
        if not self._folder.is_dir():
            raise UnavailableError(f"journal: there is no folder {self._folder}; create it")

    async def aclose(self) -> None:
        pass


class JournalDeadLetters:
    """Counts the lines of the file that is named after a dead-letter queue."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def depth(self, queue: str) -> int | None:
        file = self._folder / queue
        return len(file.read_text().splitlines()) if file.exists() else None

    def receive(self, queue: str, *, limit: int, prefetch: int) -> NoReturn:
        raise UnavailableError("journal: dead letters can only be counted")

    async def aclose(self) -> None:
        pass


class ScratchJournal:
    def __init__(self, folder: Path, name: str) -> None:
        self._file = folder / name
        self.transport = JournalTransport(folder, "")
        self.address = JournalAddress(name=name)

    async def drop(self) -> None:
        self._file.unlink(missing_ok=True)


class JournalPlugin(TransportPlugin):
    default_routing = "each event to the journal of its type"
    pipelined = True
    dead_letter_queues = True
    scratch_queues = True

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        if unknown := set(options) - {"ending"}:
            raise ConfigurationError(f"journal has no option {unknown.pop()!r}; there is ending")
        return JournalTransport(Path(url.removeprefix("journal://")), options.get("ending", ""))

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        return JournalAddress(name=options.get("journal", destination))

    def dead_letters(self, url: str, options: Mapping[str, Any], *, timeout: object = None) -> BrokerDeadLetters:
        return JournalDeadLetters(Path(url.removeprefix("journal://")))

    def queues(self, options: Mapping[str, Any], addresses: Mapping[str, Address]) -> Mapping[str, str | None]:
        return {to.name: None for to in addresses.values() if isinstance(to, JournalAddress)}

    def scratch(self, url: str, options: Mapping[str, Any], name: str) -> ScratchQueue:
        return ScratchJournal(Path(url.removeprefix("journal://")), name)


class ScratchToy:
    def __init__(self, scratch: ScratchStore) -> None:
        self._scratch = scratch
        self.url = f"toy://{scratch.url.removeprefix('sqlite://')}"
        self.options = replace(scratch.options, extra={})

    async def existing(self) -> Sequence[str]:
        return await self._scratch.existing()

    async def drop(self) -> None:
        await self._scratch.drop()


class ToyPlugin(StorePlugin):
    scratch_stores = True

    def open(self, url: str, options: StoreOptions) -> AdminStore:
        return store_plugin("sqlite").open(_sqlite(url, options), options)

    def producer(self, url: str) -> Producer:
        return store_plugin("sqlite").producer(_sqlite(url, StoreOptions()))

    def scratch(self, url: str, options: StoreOptions, name: str) -> ScratchStore:
        return ScratchToy(store_plugin("sqlite").scratch(_sqlite(url, options), options, name))


def _sqlite(url: str, options: StoreOptions) -> str:
    return f"sqlite://{url.removeprefix('toy://')}{options.extra.get('suffix', '')}"
