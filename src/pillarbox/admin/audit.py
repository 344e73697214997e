"""The audit: which operator did what, when, to what and to how many; in pages, the newest first.

An entry names what changed and never the content: the audit is kept longer than events, and more users may read it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from pillarbox.admin.listing import page_of

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
"""No detail."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action of an operator."""

    id: int
    at: datetime
    who: str
    what: str
    """retry, discard, reschedule, dead_letter, edit, replay, override, drain, prune, requeue …"""
    subject: str
    """An event id, a group of dead letters, a filter in words, a destination, a relay, a queue."""
    count: int
    """How many messages it was done to so far."""
    detail_json: str
    """For a bulk action, `left` is the number of messages that it was not done to, or not yet."""

    @property
    def detail(self) -> Mapping[str, Any]:
        decoded: dict[str, Any] = json.loads(self.detail_json)
        return decoded


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries to list; None matches all."""

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
    """Where the next page continues; None if there is none."""


class FoundEntry(NamedTuple):
    """A row that a store scanned for a page of the audit."""

    entry: AuditEntry
    wanted: bool
    edge: bool
    """The last row that was scanned: the rows after it are unknown."""


class Audit(Protocol):
    """Who did what. A bulk action is one entry: `add` begins it with a count of 0 and all messages `remaining`."""

    async def add(
        self, what: str, subject: str = "", *, count: int = 1, detail: Mapping[str, Any] = NOTHING, by: str = ""
    ) -> int:
        """Enter what an operator did, or begins to do; returns the number of the entry."""
        ...

    async def list(self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None) -> AuditPage:
        """Return one page of entries, the newest first; reads a bounded number of entries."""
        ...


def audit_page(found: Sequence[FoundEntry], wanted: AuditFilter, *, limit: int) -> AuditPage:
    """Return the page that scanned rows make; see `page_of`."""
    entries, last = page_of(found, limit=limit)
    # Numbers grow with time, except for concurrent transactions: all rows after a whole scan are older still.
    if last is None or (wanted.since is not None and last.at < wanted.since):
        return AuditPage(entries, None)
    return AuditPage(entries, last.id)
