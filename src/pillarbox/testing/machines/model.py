"""The model of messages in plain Python: no indexes, every rule written once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

Identity = tuple[str, str]
QueueName = tuple[str, str]
"""Key and destination."""
Time = Literal["past", "future"]
DestinationStatus = tuple[str, str]
"""Destination and status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMessage:
    """A pending message."""

    sequence: int
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
    def holds_queue(self) -> bool:
        retry = self.time is not None and self.attempts + self.deferrals > 0
        return self.held is not None or retry or self.time == "past"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDeadLetter:
    """A dead letter."""

    event_id: str
    destination: str
    key: str | None
    payload: bytes
    attempts: int


@dataclass
class Model:
    """All messages, and where they are."""

    pending: dict[Identity, PendingMessage] = field(default_factory=dict)
    published: Counter[Identity] = field(default_factory=Counter)
    dead: list[ModelDeadLetter] = field(default_factory=list)
    """The dead letters, oldest first."""
    sequences: count[int] = field(default_factory=count)

    def record(self, event_id: str, destination: str, key: str | None, payload: bytes, time: Time | None) -> None:
        row = PendingMessage(
            sequence=next(self.sequences),
            event_id=event_id,
            destination=destination,
            key=key,
            payload=payload,
            time=time,
        )
        self.pending[row.identity] = row

    def deliver(self, identity: Identity, to: str) -> None:
        self.published[self.pending.pop(identity).event_id, to] += 1

    def retry(self, identity: Identity, to: str, *, time: Time, counted: bool) -> None:
        row = self._with_attempt(self.pending.pop(identity), counted=counted)
        self._put(replace(row, destination=to, time=time, held=None))

    def note(self, identity: Identity, *, counted: bool) -> None:
        self._put(self._with_attempt(self.pending.pop(identity), counted=counted))

    def dead_letter(self, identity: Identity, to: str) -> None:
        row = self.pending.pop(identity)
        self._dead_letter(replace(row, destination=to, attempts=row.attempts + 1))

    def block(self, identity: Identity, to: str) -> None:
        row = self.pending.pop(identity)
        self._put(replace(row, destination=to, held="blocked", attempts=row.attempts + 1))

    def hold(self, identity: Identity, to: str, held: str) -> None:
        self._put(replace(self.pending.pop(identity), destination=to, held=held))

    def split(self, identity: Identity, destinations: tuple[str, ...]) -> None:
        message = self.pending.pop(identity)
        for destination in destinations:
            self._put(replace(message, destination=destination))

    def retry_dead_letter(self, dead_letter: ModelDeadLetter) -> bool:
        """Move a dead letter to the end of its key, unless its event is already pending."""
        if (dead_letter.event_id, dead_letter.destination) in self.pending:
            return False
        self.dead.remove(dead_letter)
        self.record(dead_letter.event_id, dead_letter.destination, dead_letter.key, dead_letter.payload, None)
        self.pending[dead_letter.event_id, dead_letter.destination] = replace(
            self.pending[dead_letter.event_id, dead_letter.destination], deferrals=1
        )
        return True

    def request(self, action: str, identity: Identity, time: Time) -> None:
        if identity not in self.pending:
            return
        row = self.pending.pop(identity)
        if action != "discard":
            attempts = 0 if action == "retry" else row.attempts
            self._put(replace(row, held=None, time=time, attempts=attempts, deferrals=max(row.deferrals, 1)))

    def in_order(self) -> list[PendingMessage]:
        return sorted(self.pending.values(), key=lambda row: (row.sequence, row.destination))

    def must_wait(self, row: PendingMessage) -> bool:
        """Return whether an earlier message of its key holds it back."""
        return any(
            other.holds_queue and _share_queue(row, other)
            for other in self.pending.values()
            if row.key is not None and other.key == row.key and other.sequence < row.sequence
        )

    def next_in_queue(self, queue: QueueName) -> list[PendingMessage]:
        """Return the waiting messages of this ordering queue that no pending message holds back."""
        key, destination = queue
        waiting = [
            row for row in self.in_order() if (row.key, row.destination, row.held) == (key, destination, "waiting")
        ]
        return [row for row in waiting if not any(self._holds_back(other, row) for other in self.pending.values())]

    def orphaned_queues(self) -> set[QueueName]:
        queues = {(row.key, row.destination) for row in self.pending.values() if row.key and row.held == "waiting"}
        return {(key, destination) for key, destination in queues if key and self.next_in_queue((key, destination))}

    def statuses(self, event_id: str) -> list[DestinationStatus]:
        """Return the destination and status of every copy of an event, as `find_event` must return them."""
        waiting = [
            (row.destination, "FAILED" if row.held == "blocked" else "PENDING")
            for row in self.pending.values()
            if row.event_id == event_id
        ]
        published = [(to, "PUBLISHED") for name, to in self.published.elements() if name == event_id]
        dead = [(dead_letter.destination, "FAILED") for dead_letter in self.dead if dead_letter.event_id == event_id]
        return sorted(waiting + published + dead)

    def _holds_back(self, other: PendingMessage, row: PendingMessage) -> bool:
        """Return whether a message holds another back; a waiting one does if its queue differs ('' matches all)."""
        if other.key != row.key or other.sequence >= row.sequence or not other.holds_queue:
            return False
        if other.destination == row.destination:
            return other.held != "waiting"
        return _share_queue(row, other)

    def _with_attempt(self, row: PendingMessage, *, counted: bool) -> PendingMessage:
        return replace(row, attempts=row.attempts + counted, deferrals=row.deferrals + (not counted))

    def _put(self, row: PendingMessage) -> None:
        first = self.pending.get(row.identity)
        if first is None:
            self.pending[row.identity] = row
        elif first.payload != row.payload:
            self._dead_letter(row)

    def _dead_letter(self, row: PendingMessage) -> None:
        self.dead.append(
            ModelDeadLetter(
                event_id=row.event_id,
                destination=row.destination,
                key=row.key,
                payload=row.payload,
                attempts=row.attempts,
            )
        )


def _share_queue(row: PendingMessage, other: PendingMessage) -> bool:
    return other.destination in (row.destination, "") or row.destination == ""
