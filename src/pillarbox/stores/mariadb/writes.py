"""Settles and holds messages: one transaction per batch, which locks the lanes and compares their epochs first.

The lanes stay locked until the transaction ends, so the epochs that it saw are those under which it commits. What
belongs to a lane that another relay owns by now is left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any, NamedTuple, assert_never

from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import (
    DELIVERED,
    MAX_DELAY,
    Dead,
    Decision,
    Delivered,
    RequestResults,
    Resolved,
    Retry,
    Split,
    sanitize_error,
)
from pillarbox.stores.admin.requests import SqlRequests
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection, Steps
from pillarbox.stores.mariadb.engine import MariaDBEngine
from pillarbox.stores.mariadb.lanes import microseconds
from pillarbox.stores.mariadb.requests import MariaDBRequests
from pillarbox.stores.mariadb.statements import MariaDBStatements
from pillarbox.stores.refused_rows import IsolatingWriter, halve, refusal_text


class MariaDBSettlementEntry(NamedTuple):
    """One message that is settled, as `fill_settlement` reads it, and its lane."""

    id: int
    destination: str
    resolved: str
    outcome: str
    counted: bool = False
    counted_before_send: bool = False
    delay: int | None = None
    """Microseconds."""
    error: str | None = None
    attempts: int | None = None
    """Attempts before this one, if one is counted."""
    deferrals: int | None = None
    seconds: float | None = None
    lane: int = 0


Entries = Sequence[MariaDBSettlementEntry]
Work = Callable[[Entries], Steps[Settled]]
PENDING = frozenset({"retry", "blocked", "hold", "note", "split"})
"""The outcomes after which a message is still pending, perhaps for another destination."""


class MariaDBWrites:
    """See `pillarbox.core.outcome.Writes`."""

    def __init__(
        self, connection: MariaDBStoreConnection, statements: MariaDBStatements, *, history: bool, ledger: bool
    ) -> None:
        self._connection = connection
        self._operators = SqlRequests(MariaDBEngine(connection, statements))
        self._requests = MariaDBRequests(connection, statements)
        self._history = history
        self._ledger = ledger
        self._sql = statements.get

    async def settle(self, epochs: Epochs, decisions: Sequence[Decision]) -> Settled:
        entries = [_settled(decision) for decision in decisions]
        if entries and all(entry.outcome == "delivered" for entry in entries):
            try:
                return await self._write(epochs, self._deliver, entries, progress=True)
            except RowsRefusedError:
                pass  # the statements below find the row
        return await self._fenced(epochs, entries, self._settle, progress=True)

    def _deliver(self, entries: Entries) -> Steps[Settled]:
        """Settle deliveries without the temporary table."""
        rows = [[entry.id, entry.destination, entry.resolved, entry.seconds] for entry in entries]
        given = {"delivered": rows}
        if self._history:
            yield self._sql("deliver", "at_once"), given
        if self._ledger:
            yield self._sql("ledger_delivered", "at_once"), given
        given = {"positions": [[entry.id, entry.destination] for entry in entries]}
        return Settled(count=(yield self._sql("remove_positions"), given).affected)

    def _settle(self, entries: Entries) -> Steps[Settled]:
        outcomes = {entry.outcome for entry in entries}
        duplicates, dead = yield from self._fill(entries)
        if outcomes & {"retry", "dead", "blocked"}:
            yield self._sql("add_attempts"), {}
        if self._history and "delivered" in outcomes:
            yield self._sql("deliver"), {}
        if dead:
            yield self._sql("dead_letter"), {}
        if self._ledger:
            yield self._sql("ledger_delivered"), {}
            yield self._sql("ledger_failed"), {}
        count = (yield self._sql("remove_settled"), {}).affected
        if outcomes & {"retry", "blocked"}:
            count += (yield self._sql("requeue"), {}).affected
        return Settled(count=count - duplicates, duplicates=duplicates)

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        entries = [_entry(message, destination, "hold") for message, destination in messages]
        return await self._fenced(epochs, entries, partial(self._update_pending, "hold", {"held": held.value}))

    async def count_attempt(
        self,
        epochs: Epochs,
        messages: Sequence[Resolved],
        *,
        error: str,
        counted: bool = False,
        counted_before_send: bool = False,
    ) -> Settled:
        entries = [
            _entry(message, destination, "note", attempts=message.attempts, deferrals=message.deferrals)
            for message, destination in messages
        ]
        given = {"error": sanitize_error(error), "counted": counted, "counted_before_send": counted_before_send}
        return await self._fenced(epochs, entries, partial(self._update_pending, "count_attempt", given))

    def _update_pending(self, statement: str, given: Mapping[str, object], entries: Entries) -> Steps[Settled]:
        """Update messages that stay pending, from now on under their resolved destination."""
        duplicates = yield from self._drop_duplicates(entries)
        count = (yield self._sql(statement), given).affected
        return Settled(count=count, duplicates=duplicates)

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        entries = [
            _entry(message, destination, "split") for message, destinations in splits for destination in destinations
        ]
        return await self._fenced(epochs, entries, self._split)

    def _split(self, entries: Entries) -> Steps[Settled]:
        duplicates, dead = yield from self._fill(entries)
        if dead:
            yield self._sql("dead_letter"), {}
        count = (yield self._sql("split_copy"), {}).affected
        yield self._sql("split_replace"), {}
        return Settled(count=count, duplicates=duplicates)

    async def execute_requests(
        self, epochs: Epochs, *, limit: int = 100, in_flight: Collection[tuple[int, str]] = ()
    ) -> RequestResults:
        return await self._requests.execute(epochs, limit=limit, in_flight=frozenset(in_flight))

    async def request_retry(self, events: Sequence[tuple[str, str]], *, by: str) -> None:
        await self._operators.add("retry", events, by=by)

    def _fill(self, entries: Entries) -> Steps[tuple[int, int]]:
        """Enter what is settled; returns how many are duplicates, and how many are to be dead-lettered."""
        yield self._sql("clear_settlement"), {}
        yield self._sql("fill_settlement"), {"messages": [[*entry[:-1]] for entry in entries]}
        yield self._sql("clean_settlement"), {}
        if any(entry.resolved != entry.destination and entry.outcome in PENDING for entry in entries):
            yield self._sql("find_duplicates"), {}
            [(duplicates, dead)] = (yield self._sql("count_duplicates"), {}).rows
            return int(duplicates), int(dead)
        return 0, sum(entry.outcome == "dead" for entry in entries)

    def _drop_duplicates(self, entries: Entries) -> Steps[int]:
        duplicates, dead = yield from self._fill(entries)
        if dead:
            yield self._sql("dead_letter"), {}
        if dead or duplicates:
            yield self._sql("remove_settled"), {}
        return duplicates

    async def _fenced(self, epochs: Epochs, entries: Entries, work: Work, *, progress: bool = False) -> Settled:
        writer: IsolatingWriter[MariaDBSettlementEntry] = IsolatingWriter(
            dead_letter=partial(self._dead_letter_refused, epochs), position=_position, halve=_halve
        )
        if entries:
            await writer.run(entries, partial(self._write, epochs, work, progress=progress))
        return writer.settled()

    def _dead_letter_refused(self, epochs: Epochs, entries: Entries, error: str) -> Awaitable[Settled] | None:
        first = entries[0]
        if first.outcome == "dead":
            return None
        resolved = first.resolved if len(entries) == 1 else first.destination
        told = sanitize_error(refusal_text(error, delivered=first.outcome == "delivered"))
        dead = MariaDBSettlementEntry(first.id, first.destination, resolved, "dead", error=told, lane=first.lane)
        return self._write(epochs, self._settle, [dead], progress=True)

    async def _write(self, epochs: Epochs, work: Work, entries: Entries, *, progress: bool = False) -> Settled:
        return await self._connection.transact(self._in_own_lanes(epochs, work, entries, progress=progress))

    def _in_own_lanes(self, epochs: Epochs, work: Work, entries: Entries, *, progress: bool) -> Steps[Settled]:
        wanted = {entry.lane for entry in entries}
        rows = (yield self._sql("lock_lanes"), {"lanes": sorted(wanted)}).rows
        own = {lane for lane, epoch, _ in rows if epochs.get(lane) == epoch}
        kept = entries if own == wanted else [entry for entry in entries if entry.lane in own]
        settled = (yield from work(kept)) if kept else Settled(count=0)
        if progress and (crashed := [lane for lane, _, crashes in rows if crashes and lane in own]):
            yield self._sql("clear_crashes"), {"lanes": crashed}
        return Settled(count=settled.count, duplicates=settled.duplicates, lost=frozenset(wanted - own))


def _position(entries: Entries) -> tuple[int, str]:
    return entries[0].id, entries[0].destination


def _halve(entries: Entries) -> tuple[Entries, Entries] | None:
    """The copies of one message stay together."""
    messages = [list(copies) for _, copies in groupby(entries, key=lambda entry: (entry.id, entry.destination))]
    halves = halve(messages)
    return None if halves is None else (list(chain(*halves[0])), list(chain(*halves[1])))


def _entry(message: Message, resolved: str, outcome: str, **facts: Any) -> MariaDBSettlementEntry:
    return MariaDBSettlementEntry(message.id, message.destination, resolved, outcome, lane=message.lane, **facts)


def _settled(decision: Decision) -> MariaDBSettlementEntry:
    message, outcome, destination, seconds = decision
    entry = _entry(message, destination, "delivered", seconds=seconds)
    if outcome is DELIVERED:  # as most are
        return entry
    counts: Mapping[str, Any] = {"attempts": message.attempts, "deferrals": message.deferrals}
    match outcome:
        case Delivered():
            return entry
        case Retry(delay=delay):
            entry = entry._replace(outcome="retry", delay=microseconds(min(delay, MAX_DELAY)), **counts)
        case Dead(block=True):
            entry = entry._replace(outcome="blocked", **counts)
        case Dead():
            entry = entry._replace(outcome="dead")
        case _:
            assert_never(outcome)
    return entry._replace(
        counted=outcome.counted, counted_before_send=outcome.counted_before_send, error=sanitize_error(outcome.error)
    )
