"""The model of messages in plain Python: no indexes, every rule written once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

Identity = tuple[str, str]
Queue = tuple[str, str]
"""Key and destination."""
Time = Literal["past", "future"]
Fate = tuple[str, str]
"""Destination and status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A pending message."""

    place: int
    event_id: str
    destination: str
    key: str | None
    payload: bytes
    time: Time | None = None
    held: str | None = None
    attempts: int = 0
    deferrals: int = 0

    @property
    def identity(self) -> Identity:
        return self.event_id, self.destination

    @property
    def ready(self) -> bool:
        return self.held is None and self.time is None

    @property
    def due(self) -> bool:
        return self.held is None and self.time == "past"

    @property
    def stands_in_the_way(self) -> bool:
        retry = self.time is not None and self.attempts + self.deferrals > 0
        return self.held is not None or retry or self.time == "past"


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A dead letter."""

    event_id: str
    destination: str
    key: str | None
    payload: bytes
    attempts: int


@dataclass
class Model:
    """All messages, and where they are."""

    waiting: dict[Identity, Row] = field(default_factory=dict)
    published: Counter[Identity] = field(default_factory=Counter)
    dead: list[Letter] = field(default_factory=list)
    """Return the pending messages, oldest first."""
    places: count[int] = field(default_factory=count)

    def record(self, event_id: str, destination: str, key: str | None, payload: bytes, time: Time | None) -> None:
        row = Row(
            place=next(self.places), event_id=event_id, destination=destination, key=key, payload=payload, time=time
        )
        self.waiting[row.identity] = row

    def deliver(self, identity: Identity, to: str) -> None:
        self.published[self.waiting.pop(identity).event_id, to] += 1

    def retry(self, identity: Identity, to: str, *, time: Time, counted: bool) -> None:
        row = self._tried(self.waiting.pop(identity), counted=counted)
        self._put(replace(row, destination=to, time=time, held=None))

    def note(self, identity: Identity, *, counted: bool) -> None:
        self._put(self._tried(self.waiting.pop(identity), counted=counted))

    def dead_letter(self, identity: Identity, to: str) -> None:
        row = self.waiting.pop(identity)
        self._dead_letter(replace(row, destination=to, attempts=row.attempts + 1))

    def block(self, identity: Identity, to: str) -> None:
        row = self.waiting.pop(identity)
        self._put(replace(row, destination=to, held="blocked", attempts=row.attempts + 1))

    def hold(self, identity: Identity, to: str, held: str) -> None:
        self._put(replace(self.waiting.pop(identity), destination=to, held=held))

    def split(self, identity: Identity, destinations: tuple[str, ...]) -> None:
        whole = self.waiting.pop(identity)
        for destination in destinations:
            self._put(replace(whole, destination=destination))

    def revive(self, letter: Letter) -> bool:
        """Move a dead letter to the end of its key, unless its event is already pending."""
        if (letter.event_id, letter.destination) in self.waiting:
            return False
        self.dead.remove(letter)
        self.record(letter.event_id, letter.destination, letter.key, letter.payload, None)
        self.waiting[letter.event_id, letter.destination] = replace(
            self.waiting[letter.event_id, letter.destination], deferrals=1
        )
        return True

    def ask(self, action: str, identity: Identity, time: Time) -> None:
        if identity not in self.waiting:
            return
        row = self.waiting.pop(identity)
        if action != "discard":
            attempts = 0 if action == "retry" else row.attempts
            self._put(replace(row, held=None, time=time, attempts=attempts, deferrals=max(row.deferrals, 1)))

    def in_order(self) -> list[Row]:
        return sorted(self.waiting.values(), key=lambda row: (row.place, row.destination))

    def must_wait(self, row: Row) -> bool:
        """Return whether an earlier message of its key holds it back."""
        return any(
            other.stands_in_the_way and _same_line(row, other)
            for other in self.waiting.values()
            if row.key is not None and other.key == row.key and other.place < row.place
        )

    def read_on(self, line: Queue) -> list[Row]:
        """Return the waiting messages of this ordering queue that no pending message holds back."""
        key, destination = line
        waiting_rows = [
            row for row in self.in_order() if (row.key, row.destination, row.held) == (key, destination, "waiting")
        ]
        return [row for row in waiting_rows if not any(self._heads(other, row) for other in self.waiting.values())]

    def orphaned_queues(self) -> set[Queue]:
        lines = {(row.key, row.destination) for row in self.waiting.values() if row.key and row.held == "waiting"}
        return {(key, destination) for key, destination in lines if key and self.read_on((key, destination))}

    def fates(self, event_id: str) -> list[Fate]:
        """Return what `find` must report of an event."""
        waiting = [
            (row.destination, "FAILED" if row.held == "blocked" else "PENDING")
            for row in self.waiting.values()
            if row.event_id == event_id
        ]
        published = [(to, "PUBLISHED") for name, to in self.published.elements() if name == event_id]
        dead = [(letter.destination, "FAILED") for letter in self.dead if letter.event_id == event_id]
        return sorted(waiting + published + dead)

    def _heads(self, other: Row, row: Row) -> bool:
        """Return whether a message holds another back; a waiting one does if its queue differs ('' matches all)."""
        if other.key != row.key or other.place >= row.place or not other.stands_in_the_way:
            return False
        if other.destination == row.destination:
            return other.held != "waiting"
        return _same_line(row, other)

    def _tried(self, row: Row, *, counted: bool) -> Row:
        return replace(row, attempts=row.attempts + counted, deferrals=row.deferrals + (not counted))

    def _put(self, row: Row) -> None:
        first = self.waiting.get(row.identity)
        if first is None:
            self.waiting[row.identity] = row
        elif first.payload != row.payload:
            self._dead_letter(row)

    def _dead_letter(self, row: Row) -> None:
        self.dead.append(
            Letter(
                event_id=row.event_id,
                destination=row.destination,
                key=row.key,
                payload=row.payload,
                attempts=row.attempts,
            )
        )


def _same_line(row: Row, other: Row) -> bool:
    return other.destination in (row.destination, "") or row.destination == ""
