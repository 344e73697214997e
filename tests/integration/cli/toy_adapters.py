"""Adapters of another distribution: a transport that appends to files, and a store that is SQLite by another name.

A test copies this file into a distribution of its own; it imports public names only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pillarbox.adapters import (
    Address,
    AdminStore,
    ConfigurationError,
    Outgoing,
    Pace,
    Producer,
    Result,
    StoreOptions,
    StorePlugin,
    Transport,
    TransportPlugin,
    UnavailableError,
)
from pillarbox.plugins import store_plugin


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalAddress(Address):
    name: str


class JournalTransport:
    pace = Pace()
    address_type = JournalAddress

    def __init__(self, folder: Path, ending: str) -> None:
        self._folder = folder
        self._ending = ending

    def defaults(self, event_type: str) -> Mapping[str, Address]:
        return {event_type: JournalAddress(name=event_type)}

    async def send(self, batch: Sequence[Outgoing]) -> list[Result]:
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


class JournalPlugin(TransportPlugin):
    default_routing = "each event to the journal of its type"

    def open(self, url: str, options: Mapping[str, Any]) -> Transport:
        if unknown := set(options) - {"ending"}:
            raise ConfigurationError(f"journal has no option {unknown.pop()!r}; there is ending")
        return JournalTransport(Path(url.removeprefix("journal://")), options.get("ending", ""))

    def address(self, destination: str, options: Mapping[str, Any]) -> Address:
        return JournalAddress(name=options.get("journal", destination))


class ToyPlugin(StorePlugin):
    def open(self, url: str, options: StoreOptions) -> AdminStore:
        return store_plugin("sqlite").open(_sqlite(url, options), options)

    def producer(self, url: str) -> Producer:
        return store_plugin("sqlite").producer(_sqlite(url, StoreOptions()))


def _sqlite(url: str, options: StoreOptions) -> str:
    return f"sqlite://{url.removeprefix('toy://')}{options.extra.get('suffix', '')}"
