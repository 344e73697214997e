"""What an operator sees and asks for. Only the lane's owner changes what waits; dead letters are nobody's lane."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pillarbox.core.amendment import Amendment
from pillarbox.core.audit import EVERYTHING, NOTHING, AuditEntry, AuditFilter, AuditPage, FoundEntry, audit_page
from pillarbox.core.message import Held, Message, Status
from pillarbox.core.people import Action, DeadLetter, EventRow
from pillarbox.stores.memory.tables import Buried, Identity, Request, Stored, Tables, verb


class MemoryPeople:
    """See `pillarbox.core.store.People`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def find(self, event_id: str) -> list[EventRow]:
        return sorted(self._known(event_id), key=lambda row: row.destination)

    @verb
    def dead(self, *, limit: int = 100, before: int | None = None) -> list[DeadLetter]:
        newest_first = reversed(self._tables.dead.items())
        letters = [_letter(number, buried) for number, buried in newest_first if before is None or number < before]
        return letters[:limit]

    @verb
    def retry(self, ids: Sequence[int], *, by: str = "", act: int | None = None) -> int:
        return sum(self._revive(number, by=by, act=act) for number in sorted(set(ids)))

    @verb
    def amend(
        self, letter: int, *, payload: bytes | None = None, headers: Mapping[str, str] | None = None, by: str = ""
    ) -> bool:
        if letter not in self._tables.dead:
            return False
        m = self._tables.dead[letter].stored.message
        return self._revive(
            letter, by=by, amendment=Amendment.of(m.payload, m.headers_json, payload=payload, headers=headers)
        )

    @verb
    def discard(self, ids: Sequence[int], *, by: str = "", act: int | None = None) -> int:
        gone = [(number, self._tables.dead.pop(number)) for number in sorted(set(ids)) if number in self._tables.dead]
        for number, buried in gone:
            self._enter(by, "discard", number, buried.stored.message, act=act)
        return len(gone)

    @verb
    def ask(
        self,
        action: Action,
        events: Sequence[Identity],
        *,
        delay: float = 0,
        by: str = "",
        act: int | None = None,
    ) -> list[int]:
        numbers = [self._tables.draw() for _ in events]
        for number, identity in zip(numbers, events, strict=True):
            self._tables.requests[number] = Request(
                action=action, identity=identity, delay=delay, by=by, at=self._tables.now(), act=act
            )
        return numbers

    @verb
    def remember(
        self, what: str, subject: str = "", *, count: int = 1, detail: Mapping[str, Any] = NOTHING, by: str = ""
    ) -> int:
        return self._tables.remember(by, what, subject, count=count, **detail).id

    @verb
    def audit(self, wanted: AuditFilter = EVERYTHING, *, limit: int = 100, before: int | None = None) -> AuditPage:
        found = [
            FoundEntry(entry, _is_wanted(entry, wanted), False)
            for number, entry in reversed(self._tables.audit.items())
            if before is None or number < before
        ]
        return audit_page(found, wanted, limit=limit)

    def _revive(self, number: int, *, by: str, amendment: Amendment | None = None, act: int | None = None) -> bool:
        if number not in self._tables.dead:
            return False
        m = self._tables.dead[number].stored.message
        if m.identity in self._tables.waiting:
            return False
        del self._tables.dead[number]
        if amendment is None:
            self._enter(by, "retry", number, m, act=act)
        else:
            self._enter(by, "edit", number, m, **amendment.told)
            m = m._replace(payload=amendment.payload, headers_json=amendment.headers_json)
        again = m._replace(id=self._tables.draw(), available_at=None, held=None, attempts=0, tries=1)
        self._tables.put(Stored(message=again))
        # An operator wants it sent, whatever the ledger says; the one try does the same for the history.
        self._tables.processed.pop(m.identity, None)
        return True

    def _enter(self, by: str, what: str, number: int, m: Message, *, act: int | None = None, **more: Any) -> None:
        if act is None:
            self._tables.remember(by, what, m.event_id, destination=m.destination, dead_id=number, **more)
        else:
            self._tables.grow(act, 1)

    def _known(self, event_id: str) -> Iterator[EventRow]:
        for stored in self._tables.waiting.values():
            if stored.message.event_id == event_id:
                yield self.waiting(stored)
        for published in self._tables.history.values():
            if published.stored.message.event_id == event_id:
                yield _row(published.stored, Status.PUBLISHED)._replace(published_at=published.published_at)
        for buried in self._tables.dead.values():
            if buried.stored.message.event_id == event_id:
                yield _row(buried.stored, Status.FAILED)._replace(last_error=buried.error)

    def waiting(self, stored: Stored) -> EventRow:
        """A row of the hot table as people see it."""
        if stored.message.held == Held.BLOCKED:
            return _row(stored, Status.FAILED)
        relay = self._hand(stored.message.identity)
        row = _row(stored, Status.PENDING if relay is None else Status.PROCESSING)
        error, next_try = self._outage(stored.message)
        return row._replace(
            last_error=row.last_error or error,
            next_retry_at=stored.message.available_at or next_try,
            locked_by=relay,
        )

    def _outage(self, m: Message) -> tuple[str | None, datetime | None]:
        """The error and the next attempt of the destination that the message waits for."""
        if m.held == Held.BEHIND or not (m.destination == "" or m.held == Held.ASIDE or m.tries):
            return None, None
        failing = {name: row for name, row in self._tables.destinations.items() if row.steering.last_error is not None}
        if m.destination:
            row = failing.get(m.destination)
            return (row.steering.last_error, row.next_try_at) if row else (None, None)
        # Not routed yet: it waits for all of them while no relay can send anywhere.
        states = [relay.breakers for relay in self._tables.living()]
        if any(state == "closed" for breakers in states for state in breakers.values()):
            return None, None
        shut = [row for name, row in failing.items() if any(name in breakers for breakers in states)]
        first = min(shut, key=lambda row: row.next_try_at or self._tables.now(), default=None)
        return (first.steering.last_error, first.next_try_at) if first else (None, None)

    def _hand(self, identity: Identity) -> str | None:
        """The relay that has a message in hand, by its label and its id."""
        for relay in self._tables.living():
            if any((hand.event_id, hand.destination) == identity for hand in relay.in_hand):
                return f"{relay.card.name} {relay.card.id}".strip()
        return None


def _is_wanted(entry: AuditEntry, wanted: AuditFilter) -> bool:
    return (
        wanted.who in (None, entry.who)
        and wanted.what in (None, entry.what)
        and (wanted.since is None or entry.at >= wanted.since)
    )


def _row(stored: Stored, status: Status) -> EventRow:
    m = stored.message
    return EventRow(
        event_id=m.event_id,
        destination=m.destination,
        status=status,
        event_type=m.event_type,
        key=m.key,
        attempts=m.attempts,
        retry_count=stored.retry_count,
        last_error=stored.last_error,
        next_retry_at=None,
        published_at=None,
        locked_by=None,
    )


def _letter(number: int, buried: Buried) -> DeadLetter:
    m = buried.stored.message
    return DeadLetter(
        id=number,
        event_id=m.event_id,
        destination=m.destination,
        event_type=m.event_type,
        key=m.key,
        payload=m.payload,
        error=buried.error,
        attempts=m.attempts,
        first_failed_at=buried.stored.first_failed_at,
        died_at=buried.died_at,
    )
