"""Settles and holds messages: one transaction per batch, which compares the epoch first.

`BEGIN IMMEDIATE` makes the transaction the only writer, so the epoch it saw is the epoch it commits under. The messages
of a write go into a temporary table, `settlement`, and every statement works from there: their number is constant. A
batch of deliveries goes without it: where nothing is kept, in one statement that compares the epoch itself.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple, assert_never

from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import Held
from pillarbox.core.outcome import (
    DELIVERED,
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
from pillarbox.stores.refused_rows import IsolatingWriter, halve, refusal_text
from pillarbox.stores.sqlite.connection import SqliteStoreConnection
from pillarbox.stores.sqlite.engine import SqliteEngine
from pillarbox.stores.sqlite.lanes import LANE
from pillarbox.stores.sqlite.statements import SqliteStatements

OWN_LANE = frozenset({LANE})
LOST = Settled(count=0, lost=OWN_LANE)


class SqliteSettlementEntry(NamedTuple):
    """One message that is settled, as `fill_settlement` reads it."""

    id: int
    destination: str
    resolved: str
    outcome: str
    counted: bool = False
    counted_before_send: bool = False
    delay: float | None = None
    error: str | None = None
    attempts: int | None = None
    """Attempts before this one, if one is counted."""
    deferrals: int | None = None
    seconds: float | None = None


Work = Callable[[sqlite3.Connection, Sequence[SqliteSettlementEntry]], Settled]


class SqliteWrites:
    """See `pillarbox.core.outcome.Writes`."""

    def __init__(
        self, connection: SqliteStoreConnection, statements: SqliteStatements, *, history: bool, ledger: bool
    ) -> None:
        self._connection = connection
        self._requests = SqlRequests(SqliteEngine(self._connection, statements))
        self._history = history
        self._ledger = ledger
        self._sql = statements.get
        kept = [name for name, keeps in (("deliver", history), ("ledger_settle", ledger)) if keeps]
        self._keep = [statements.get(name, "at_once") for name in kept]
        """Which tables a delivery writes to."""
        self._remove_delivered = statements.get("remove_delivered")
        self._settled_epoch: int | None = None
        """The epoch under which crashes were reset: only a later epoch counts more."""

    async def settle(self, epochs: Epochs, decisions: Sequence[Decision]) -> Settled:
        if decisions and all(decision.outcome is DELIVERED for decision in decisions):
            with suppress(RowsRefusedError):  # the statements below find the row
                if count := await self._deliver(epochs.get(LANE), decisions):
                    return Settled(count=count)
        entries = [_settled(decision) for decision in decisions]
        return await self._fenced(epochs, entries, self._settle)

    async def _deliver(self, epoch: int | None, decisions: Sequence[Decision]) -> int:
        """Settle deliveries without the temporary table; returns how many were settled: none if the lane was lost."""
        given = {"epoch": epoch, "delivered": _delivered(decisions)}
        is_reset = self._settled_epoch == epoch

        def work(db: sqlite3.Connection) -> int:
            for statement in self._keep:
                db.execute(statement, given)
            count = db.execute(self._remove_delivered, given).rowcount
            if count and not is_reset:
                db.execute(self._sql("clear_crashes"))
            return count

        alone = is_reset and not self._keep
        count = await (self._connection.ask(work) if alone else self._connection.write(work))
        if count:
            self._settled_epoch = epoch
        return count

    def _settle(self, db: sqlite3.Connection, entries: Sequence[SqliteSettlementEntry]) -> Settled:
        self._fill_settlement(db, entries)
        db.execute(self._sql("set_destination"))
        duplicates = self._mark_duplicates(db)
        db.execute(self._sql("add_attempts"))
        if self._history:
            db.execute(self._sql("deliver"))
        db.execute(self._sql("dead_letter"))
        if self._ledger:
            db.execute(self._sql("ledger_settle"))
        count = db.execute(self._sql("remove_settled")).rowcount
        count += db.execute(self._sql("requeue")).rowcount
        db.execute(self._sql("clear_crashes"))
        return Settled(count=count - duplicates, duplicates=duplicates)

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        entries = [SqliteSettlementEntry(*message.position, destination, "hold") for message, destination in messages]
        return await self._update_pending(epochs, entries, "hold", {"held": held.value})

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
            SqliteSettlementEntry(
                *message.position, destination, "note", attempts=message.attempts, deferrals=message.deferrals
            )
            for message, destination in messages
        ]
        given = {"error": sanitize_error(error), "counted": counted, "counted_before_send": counted_before_send}
        return await self._update_pending(epochs, entries, "count_attempt", given)

    async def _update_pending(
        self, epochs: Epochs, entries: Sequence[SqliteSettlementEntry], statement: str, given: Mapping[str, object]
    ) -> Settled:
        """Update messages that stay pending, from now on under their resolved destination."""

        def work(db: sqlite3.Connection, entries: Sequence[SqliteSettlementEntry]) -> Settled:
            self._fill_settlement(db, entries)
            db.execute(self._sql("set_destination"))
            duplicates = self._mark_duplicates(db)
            db.execute(self._sql("dead_letter"))
            db.execute(self._sql("remove_settled"))
            count = db.execute(self._sql(statement), given).rowcount
            return Settled(count=count, duplicates=duplicates)

        return await self._fenced(epochs, entries, work)

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        entries = [
            SqliteSettlementEntry(*message.position, destination, "split")
            for message, destinations in splits
            for destination in destinations
        ]

        def work(db: sqlite3.Connection, entries: Sequence[SqliteSettlementEntry]) -> Settled:
            self._fill_settlement(db, entries)
            count = db.execute(self._sql("split_copy")).rowcount
            duplicates = self._mark_duplicates(db)
            db.execute(self._sql("dead_letter"))
            db.execute(self._sql("split_replace"))
            return Settled(count=count, duplicates=duplicates)

        return await self._fenced(epochs, entries, work)

    async def execute_requests(
        self, epochs: Epochs, *, limit: int = 100, in_flight: Collection[tuple[int, str]] = ()
    ) -> RequestResults:
        def work(db: sqlite3.Connection) -> RequestResults:
            if not self._owns(db, epochs):
                return RequestResults(0, [])
            # As many more as may be in flight: those stay open and must not delay the others.
            requests = db.execute(self._sql("open_requests"), {"limit": limit + len(in_flight)})
            columns = [column for column, *_ in requests.description]
            asked = [dict(zip(columns, row, strict=True)) for row in requests.fetchall()]
            positions = [(request.pop("id"), request["destination"]) for request in asked]
            deferred = [position for position in positions if position in in_flight]
            free = [request for request, position in zip(asked, positions, strict=True) if position not in in_flight][
                :limit
            ]
            for request in free:
                db.execute(self._sql("request_begin"))
                try:
                    self._execute(db, request)
                except sqlite3.IntegrityError as error:
                    db.execute(self._sql("request_undo"))
                    told = sanitize_error(f"SQLite refuses the row: {error}")
                    db.execute(self._sql("request_close"), {"request_id": request["request_id"], "result": told})
                db.execute(self._sql("request_end"))
            return RequestResults(len(free), deferred)

        return await self._connection.write(work)

    async def request_retry(self, events: Sequence[tuple[str, str]], *, by: str) -> None:
        await self._requests.add("retry", events, by=by)

    def _execute(self, db: sqlite3.Connection, request: dict[str, object]) -> None:
        again = request["action"] in ("retry", "reschedule")
        if request["action"] == "dead_letter":
            db.execute(self._sql("request_dead_letter"), request)
        # An earlier request of the same batch may have discarded the message: only the count tells.
        done = db.execute(self._sql("request_retry" if again else "request_discard"), request).rowcount
        result = "done" if done else "not found"
        db.execute(self._sql("request_close"), {"request_id": request["request_id"], "result": result})
        if not done:
            return
        if request["bulk_action_id"] is None:
            db.execute(self._sql("request_audit"), request)
        else:
            db.execute(self._sql("audit_progress"), {"bulk_action": request["bulk_action_id"], "done": done})

    async def _fenced(self, epochs: Epochs, entries: Sequence[SqliteSettlementEntry], work: Work) -> Settled:
        writer: IsolatingWriter[SqliteSettlementEntry] = IsolatingWriter(
            dead_letter=partial(self._dead_letter_refused, epochs), position=_position, halve=_halve
        )
        if entries:
            await writer.run(entries, partial(self._write, epochs, work))
        return writer.settled()

    def _dead_letter_refused(
        self, epochs: Epochs, entries: Sequence[SqliteSettlementEntry], error: str
    ) -> Awaitable[Settled] | None:
        first = entries[0]
        if first.outcome == "dead":
            return None
        resolved = first.resolved if len(entries) == 1 else first.destination
        told = sanitize_error(refusal_text(error, delivered=first.outcome == "delivered"))
        dead = SqliteSettlementEntry(first.id, first.destination, resolved, "dead", error=told)
        return self._write(epochs, self._settle, [dead])

    async def _write(self, epochs: Epochs, work: Work, entries: Sequence[SqliteSettlementEntry]) -> Settled:
        return await self._connection.write(lambda db: work(db, entries) if self._owns(db, epochs) else LOST)

    def _owns(self, db: sqlite3.Connection, epochs: Epochs) -> bool:
        (epoch,) = db.execute(self._sql("lane_epoch")).fetchone()
        return bool(epoch == epochs.get(LANE))

    def _fill_settlement(self, db: sqlite3.Connection, entries: Iterable[SqliteSettlementEntry]) -> None:
        db.execute(self._sql("clear_settlement"))
        db.execute(self._sql("fill_settlement"), {"messages": json.dumps(list(entries))})

    def _mark_duplicates(self, db: sqlite3.Connection) -> int:
        """Mark messages that are already pending for their new destination; returns how many are duplicates."""
        outcomes = db.execute(self._sql("find_duplicates")).fetchall()
        return outcomes.count(("repeat",))


def _position(entries: Sequence[SqliteSettlementEntry]) -> tuple[int, str]:
    return entries[0].id, entries[0].destination


def _halve(
    entries: Sequence[SqliteSettlementEntry],
) -> tuple[Sequence[SqliteSettlementEntry], Sequence[SqliteSettlementEntry]] | None:
    """The copies of one message stay together."""
    messages = [list(copies) for _, copies in groupby(entries, key=itemgetter(0, 1))]
    halves = halve(messages)
    return None if halves is None else (list(chain(*halves[0])), list(chain(*halves[1])))


def _delivered(decisions: Sequence[Decision]) -> str:
    """As `delivered_at_once` reads them; the results of one send have everything but the id in common."""
    groups: defaultdict[tuple[str, str, float | None], list[int]] = defaultdict(list)
    for message, _, destination, seconds in decisions:
        groups[message.destination, destination, seconds].append(message.id)
    nested: dict[str, dict[str, dict[float | None, list[int]]]] = {}
    for (waits_for, destination, seconds), ids in groups.items():
        nested.setdefault(waits_for, {}).setdefault(destination, {})[seconds] = ids
    return json.dumps(nested)


def _settled(decision: Decision) -> SqliteSettlementEntry:
    message, outcome, destination, seconds = decision
    entry = SqliteSettlementEntry(message.id, message.destination, destination, "delivered", seconds=seconds)
    if outcome is DELIVERED:  # as most are
        return entry
    match outcome:
        case Delivered():
            return entry
        case Retry(delay=delay):
            entry = entry._replace(outcome="retry", delay=delay, attempts=message.attempts, deferrals=message.deferrals)
        case Dead(block=True):
            entry = entry._replace(outcome="blocked", attempts=message.attempts, deferrals=message.deferrals)
        case Dead():
            entry = entry._replace(outcome="dead")
        case _:
            assert_never(outcome)
    return entry._replace(
        counted=outcome.counted, counted_before_send=outcome.counted_before_send, error=sanitize_error(outcome.error)
    )
