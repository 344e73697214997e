"""Settles and holds messages. Each write compares epochs first and is atomic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar, assert_never

from pillarbox.admin.listing import Failure
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import (
    Dead,
    Decision,
    Delivered,
    Outcome,
    RequestResults,
    Resolved,
    Retry,
    Split,
    sanitize_error,
)
from pillarbox.stores.memory.tables import (
    Identity,
    StoredAttempt,
    StoredDelivery,
    StoredMessage,
    StoredRequest,
    Tables,
    atomic,
)

W = TypeVar("W", Decision, Resolved, Split)


@dataclass(slots=True)
class Written:
    """How many rows one write has changed so far."""

    count: int = 0
    duplicates: int = 0


class MemoryWrites:
    """See `pillarbox.core.outcome.Writes`."""

    def __init__(self, tables: Tables, *, history: bool, ledger: bool) -> None:
        self._tables = tables
        self._history = history
        self._ledger = ledger

    @atomic
    def settle(self, epochs: Epochs, decisions: Sequence[Decision]) -> Settled:
        held, mine = self._fence(epochs, decisions)
        for lane in held:
            self._tables.lanes[lane].crashes = 0
        written, now = Written(), self._tables.now()
        # Messages that are removed first: others may get their identity by a change of destination.
        for decision in sorted(mine, key=lambda decision: not _leaves(decision.outcome)):
            if self._waits(decision.message, counted=not _leaves(decision.outcome)):
                self._write(self._tables.remove(decision.message.identity), decision, written, now)
        return _settled(held, decisions, written)

    @atomic
    def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        lanes, mine = self._fence(epochs, messages)
        written = Written()
        for message, destination in mine:
            if self._waits(message, counted=False):
                stored = self._tables.remove(message.identity)
                self._place(_changed(stored, destination=destination, held=held.value), written)
        return _settled(lanes, messages, written)

    @atomic
    def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        held, mine = self._fence(epochs, splits)
        written = Written()
        for message, destinations in mine:
            if self._waits(message, counted=False):
                whole = self._tables.remove(message.identity)
                for destination in destinations:
                    self._place(_changed(whole, destination=destination), written)
        return _settled(held, splits, written)

    @atomic
    def count_attempt(
        self,
        epochs: Epochs,
        messages: Sequence[Resolved],
        *,
        error: str,
        counted: bool = False,
        counted_before_send: bool = False,
    ) -> Settled:
        held, mine = self._fence(epochs, messages)
        written = Written()
        for message, destination in mine:
            if self._waits(message, counted=True):
                stored = self._tables.remove(message.identity)
                stored = self._failed(stored, error, attempts=counted - counted_before_send, deferrals=int(not counted))
                self._place(_changed(stored, destination=destination), written)
        return _settled(held, messages, written)

    @atomic
    def execute_requests(
        self, epochs: Epochs, *, limit: int = 100, in_flight: Collection[tuple[int, str]] = ()
    ) -> RequestResults:
        mine: list[int] = []
        deferred: list[tuple[int, str]] = []
        for number, request in self._tables.requests.items():
            stored = self._tables.waiting.get(request.identity)
            if stored is not None and self._tables.lanes[stored.message.lane].epoch != epochs.get(stored.message.lane):
                continue
            if stored is not None and stored.message.position in in_flight:
                deferred.append(stored.message.position)
            elif len(mine) < limit:
                mine.append(number)
        for number in mine:
            self._do(number, self._tables.requests.pop(number))
        return RequestResults(len(mine), deferred)

    @atomic
    def request_retry(self, events: Sequence[Identity], *, by: str) -> None:
        for identity in events:
            self._tables.requests[self._tables.next_number()] = StoredRequest(
                action="retry", identity=identity, delay=0, by=by, at=self._tables.now()
            )

    def _fence(self, epochs: Epochs, writes: Sequence[W]) -> tuple[frozenset[int], list[W]]:
        """The lanes whose epoch is still valid, and the writes to them."""
        lanes = {write.message.lane for write in writes}
        held = frozenset(lane for lane in lanes if self._tables.lanes[lane].epoch == epochs.get(lane))
        return held, [write for write in writes if write.message.lane in held]

    def _waits(self, message: Message, *, counted: bool) -> bool:
        """Whether the row is still pending; if a failed send is counted, also whether it was not counted before."""
        stored = self._tables.waiting.get(message.identity)
        if stored is None or stored.message.id != message.id:
            return False
        return not counted or (stored.message.attempts, stored.message.deferrals) == (
            message.attempts,
            message.deferrals,
        )

    def _write(self, stored: StoredMessage, decision: Decision, written: Written, now: datetime) -> None:
        """Write the outcome of a row that was taken out."""
        stored = _changed(stored, destination=decision.destination)
        match decision.outcome:
            case Delivered():
                written.count += 1
                self._note(stored, "SUCCESS")
                if self._history:
                    self._tables.history[self._tables.next_number()] = StoredDelivery(
                        stored=stored, published_at=now, seconds=decision.seconds
                    )
            case Retry(delay=delay, error=error, counted=counted, counted_before_send=counted_before_send):
                stored = self._failed(stored, error, attempts=counted - counted_before_send, deferrals=int(not counted))
                self._record_attempt(stored, decision.outcome, decision.seconds)
                self._place(_changed(stored, held=None, available_at=self._tables.after(delay)), written)
            case Dead(error=error, block=True, counted=counted, counted_before_send=counted_before_send):
                stored = self._failed(stored, error, attempts=counted - counted_before_send)
                self._record_attempt(stored, decision.outcome, decision.seconds)
                self._place(_changed(stored, held=Held.BLOCKED.value), written)
            case Dead(error=error, counted=counted, counted_before_send=counted_before_send):
                written.count += 1
                self._note(stored, "FAILED")
                stored = self._failed(stored, error, attempts=counted - counted_before_send)
                self._record_attempt(stored, decision.outcome, decision.seconds)
                self._tables.dead_letter(stored, sanitize_error(error))
            case _:
                assert_never(decision.outcome)

    def _note(self, stored: StoredMessage, status: str) -> None:
        if self._ledger:
            self._tables.write_ledger(stored.message.identity, status)

    def _place(self, stored: StoredMessage, written: Written) -> None:
        """Put a row back, unless its event is already pending there."""
        first = self._tables.waiting.get(stored.message.identity)
        if first is None:
            written.count += 1
            self._tables.put(stored)
        elif first.message.payload == stored.message.payload:
            written.duplicates += 1
        else:
            event_id, destination = stored.message.identity
            clash = f"event id {event_id} is already pending for {destination} with another payload"
            self._tables.dead_letter(stored, f"{clash}: give each event its own id")

    def _failed(self, stored: StoredMessage, error: str, *, attempts: int = 0, deferrals: int = 0) -> StoredMessage:
        m = stored.message
        return replace(
            stored,
            message=m._replace(attempts=m.attempts + attempts, deferrals=m.deferrals + deferrals),
            last_error=sanitize_error(error),
            first_failed_at=stored.first_failed_at or self._tables.now(),
        )

    def _record_attempt(self, stored: StoredMessage, outcome: Retry | Dead, seconds: float | None) -> None:
        """Record a failed send. A message that is dead-lettered without a send has none."""
        if isinstance(outcome, Dead) and not outcome.counted:
            return
        m, error = stored.message, sanitize_error(outcome.error)
        failure = Failure(m.destination, m.failures, outcome.counted, error, self._tables.now(), seconds)
        self._tables.attempts.append(StoredAttempt(event_id=m.event_id, failure=failure))

    def _do(self, number: int, request: StoredRequest) -> None:
        if request.identity not in self._tables.waiting:
            return
        stored = self._tables.remove(request.identity)
        self._tables.carried_out[number] = request.action
        # It counts a deferral at least, so that it keeps its position in its ordering queue.
        deferrals = max(stored.message.deferrals, 1)
        then = self._tables.after(request.delay)
        match request.action:
            case "retry":
                self._tables.put(_changed(stored, held=None, available_at=then, attempts=0, deferrals=deferrals))
            case "reschedule":
                self._tables.put(_changed(stored, held=None, available_at=then, deferrals=deferrals))
            case "discard":
                pass
            case "dead_letter":
                self._tables.dead_letter(stored, stored.last_error or "dead-lettered by an operator")
            case _:
                assert_never(request.action)


def _leaves(outcome: Outcome) -> bool:
    return isinstance(outcome, Delivered) or (isinstance(outcome, Dead) and not outcome.block)


def _changed(stored: StoredMessage, **fields: Any) -> StoredMessage:
    return replace(stored, message=stored.message._replace(**fields))


def _settled(held: frozenset[int], writes: Iterable[Decision | Resolved | Split], written: Written) -> Settled:
    lanes = frozenset(write.message.lane for write in writes)
    return Settled(count=written.count, duplicates=written.duplicates, lost=lanes - held)
