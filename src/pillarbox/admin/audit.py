"""The audit: who did what, when, to what and to how many; in pages, the newest first.

It says what was changed and never what the content was: an audit is kept longer than an event, and read by more people.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
"""No detail."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What a person did."""

    id: int
    at: datetime
    who: str
    what: str
    """retry, discard, reschedule, bury, edit, replay, steer, drain, prune, requeue …"""
    subject: str
    """An event id, a group of dead letters, a filter in words, a destination, a relay, a queue."""
    count: int
    """To how many it was done so far."""
    detail_json: str
    """`left` of what was done to many at once: those to which it was not done, or not yet."""

    @property
    def detail(self) -> Mapping[str, Any]:
        decoded: dict[str, Any] = json.loads(self.detail_json)
        return decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries are wanted; what is None does not matter."""

    who: str | None = None
    what: str | None = None
    since: datetime | None = None

    @property
    def asked(self) -> int:
        """How many filters are given."""
        return sum(value is not None for value in (self.who, self.what, self.since))


EVERYTHING = AuditFilter()


class AuditPage(NamedTuple):
    """A page of the audit, the newest first."""

    entries: list[AuditEntry]
    before: int | None
    """Where the next page goes on; None if there is none."""


class FoundEntry(NamedTuple):
    """A row that a store looked at for a page."""

    entry: AuditEntry
    wanted: bool
    edge: bool
    """The last row that was looked at: what comes after it is not known."""


class Audit(Protocol):
    """Who did what. A bulk action is one entry: `add` begins it with a count of 0 and all messages `left`."""

    async def add(
        self, what: str, subject: str = "", *, count: int = 1, detail: Mapping[str, Any] = NOTHING, by: str = ""
    ) -> int:
        """Enter what an operator did, or begins to do; returns the number of the entry."""
        ...

    async def list(self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None) -> AuditPage:
        """Return one page of entries, the newest first; reads a bounded number of entries."""
        ...


def audit_page(found: Sequence[FoundEntry], wanted: AuditFilter, *, limit: int) -> AuditPage:
    """The page that rows make; there is one wanted row more than the limit, if there could be."""
    entries: list[AuditEntry] = []
    for entry, fits, edge in found:
        if fits and len(entries) == limit:
            return AuditPage(entries, entries[-1].id)
        if fits:
            entries.append(entry)
        if edge:
            # Numbers go with time, give or take a transaction: a whole look further on everything is older still.
            over = wanted.since is not None and entry.at < wanted.since
            return AuditPage(entries, None if over else entry.id)
    return AuditPage(entries, None)
