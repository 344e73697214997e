"""Settles and holds messages: one transaction per batch, which compares the epoch first.

`BEGIN IMMEDIATE` makes the transaction the only writer, so the epoch it saw is the epoch it commits under. The messages
of a write go into a temporary table, `settlement`, and every statement works from there: their number is constant. A
batch of deliveries goes without it: where nothing is kept, in one statement that compares the epoch itself.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple, assert_never

from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import Held
from pillarbox.core.outcome import DELIVERED, CarriedOut, Dead, Decision, Delivered, Resolved, Retry, Split, legible
from pillarbox.stores.admin.requests import SqlRequests
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.dialect import SqliteDialect
from pillarbox.stores.sqlite.lanes import LANE
from pillarbox.stores.sqlite.statements import SqliteStatements

OURS = frozenset({LANE})
LOST = Settled(held=frozenset(), count=0, lost=OURS)


class Entry(NamedTuple):
    """One message that is settled, as `fill_settlement` reads it."""

    id: int
    destination: str
    resolved: str
    outcome: str
    counted: bool = False
    noted: bool = False
    delay: float | None = None
    error: str | None = None
    attempts: int | None = None
    """Attempts before this one, if one is counted."""
    deferrals: int | None = None
    seconds: float | None = None


Work = Callable[[sqlite3.Connection, Sequence[Entry]], Settled]


class SqliteWrites:
    """See `pillarbox.core.outcome.Writes`.

    A row that the database refuses for what is in it must not keep others from being written: the batch is halved until
    that row is alone, and it becomes a dead letter. If even that is refused, RowsRefusedError names it once all others
    are written.
    """

    def __init__(self, connection: Connection, statements: SqliteStatements, *, history: bool, ledger: bool) -> None:
        self._connection = connection
        self._requests = SqlRequests(SqliteDialect(self._connection, statements))
        self._history = history
        self._ledger = ledger
        self._sql = statements.get
        kept = [name for name, keeps in (("deliver", history), ("ledger_settle", ledger)) if keeps]
        self._keep = [statements.get(name, "at_once") for name in kept]
        """Which tables a delivery writes to."""
        self._moved: int | None = None
        """The epoch under which crashes were reset: only a later epoch counts more."""

    async def settle(self, epochs: Epochs, decisions: Sequence[Decision]) -> Settled:
        if decisions and all(decision.outcome is DELIVERED for decision in decisions):
            with suppress(RowsRefusedError):  # the statements below find the row
                if count := await self._deliver(epochs.get(LANE), decisions):
                    return Settled(held=OURS, count=count)
        entries = [_settled(decision) for decision in decisions]
        return await self._fenced(epochs, entries, self._settle)

    async def _deliver(self, epoch: int | None, decisions: Sequence[Decision]) -> int:
        """What most settlements are, without the temporary table; returns how many went: none if the lane was lost."""
        given = {"epoch": epoch, "delivered": _delivered(decisions)}
        moved = self._moved == epoch

        def work(db: sqlite3.Connection) -> int:
            for statement in self._keep:
                db.execute(statement, given)
            count = db.execute(self._sql("remove_delivered"), given).rowcount
            if count and not moved:
                db.execute(self._sql("clear_crashes"))
            return count

        alone = moved and not self._keep
        count = await (self._connection.ask(work) if alone else self._connection.write(work))
        if count:
            self._moved = epoch
        return count

    def _settle(self, db: sqlite3.Connection, entries: Sequence[Entry]) -> Settled:
        self._lay(db, entries)
        db.execute(self._sql("set_destination"))
        duplicates = self._drop_repeats(db)
        db.execute(self._sql("add_attempts"))
        if self._history:
            db.execute(self._sql("deliver"))
        db.execute(self._sql("dead_letter"))
        if self._ledger:
            db.execute(self._sql("ledger_settle"))
        count = db.execute(self._sql("remove_settled")).rowcount
        count += db.execute(self._sql("requeue")).rowcount
        db.execute(self._sql("clear_crashes"))
        return Settled(held=OURS, count=count - duplicates, duplicates=duplicates)

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        entries = [Entry(*message.position, destination, "hold") for message, destination in messages]
        return await self._stay(epochs, entries, "hold", {"held": held.value})

    async def note(
        self, epochs: Epochs, messages: Sequence[Resolved], *, error: str, counted: bool = False, noted: bool = False
    ) -> Settled:
        entries = [
            Entry(*message.position, destination, "note", attempts=message.attempts, deferrals=message.deferrals)
            for message, destination in messages
        ]
        given = {"error": legible(error), "counted": counted, "noted": noted}
        return await self._stay(epochs, entries, "count_attempt", given)

    async def _stay(
        self, epochs: Epochs, entries: Sequence[Entry], statement: str, given: Mapping[str, object]
    ) -> Settled:
        """Write something about messages that go on waiting, from now on under their resolved destination."""

        def work(db: sqlite3.Connection, entries: Sequence[Entry]) -> Settled:
            self._lay(db, entries)
            db.execute(self._sql("set_destination"))
            duplicates = self._drop_repeats(db)
            db.execute(self._sql("dead_letter"))
            db.execute(self._sql("remove_settled"))
            count = db.execute(self._sql(statement), given).rowcount
            return Settled(held=OURS, count=count, duplicates=duplicates)

        return await self._fenced(epochs, entries, work)

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        entries = [
            Entry(*message.position, destination, "split")
            for message, destinations in splits
            for destination in destinations
        ]

        def work(db: sqlite3.Connection, entries: Sequence[Entry]) -> Settled:
            self._lay(db, entries)
            count = db.execute(self._sql("split_copy")).rowcount
            duplicates = self._drop_repeats(db)
            db.execute(self._sql("dead_letter"))
            db.execute(self._sql("split_replace"))
            return Settled(held=OURS, count=count, duplicates=duplicates)

        return await self._fenced(epochs, entries, work)

    async def carry_out(
        self, epochs: Epochs, *, limit: int = 100, in_flight: Collection[tuple[int, str]] = ()
    ) -> CarriedOut:
        def work(db: sqlite3.Connection) -> CarriedOut:
            if not self._owns(db, epochs):
                return CarriedOut(0, [])
            # As many more as may be in flight: those are left open and must not keep others from their turn.
            requests = db.execute(self._sql("open_requests"), {"limit": limit + len(in_flight)})
            columns = [column for column, *_ in requests.description]
            asked = [dict(zip(columns, row, strict=True)) for row in requests.fetchall()]
            places = [(request.pop("id"), request["destination"]) for request in asked]
            deferred = [place for place in places if place in in_flight]
            free = [request for request, place in zip(asked, places, strict=True) if place not in in_flight][:limit]
            for request in free:
                db.execute("SAVEPOINT request")
                try:
                    self._carry_out(db, request)
                except sqlite3.IntegrityError as error:
                    db.execute("ROLLBACK TO request")
                    told = legible(f"SQLite refuses the row: {error}")
                    db.execute(self._sql("request_close"), {"request_id": request["request_id"], "result": told})
                db.execute("RELEASE request")
            return CarriedOut(len(free), deferred)

        return await self._connection.write(work)

    async def request_retry(self, events: Sequence[tuple[str, str]], *, by: str) -> None:
        await self._requests.add("retry", events, by=by)

    def _carry_out(self, db: sqlite3.Connection, request: dict[str, object]) -> None:
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

    async def _fenced(self, epochs: Epochs, entries: Sequence[Entry], work: Work) -> Settled:
        if not entries:
            return Settled(held=frozenset(), count=0)
        results: list[Settled] = []
        refused: list[RowsRefusedError] = []
        await self._isolating(epochs, entries, work, results, refused)
        if refused:
            raise RowsRefusedError(
                str(refused[0]), positions=refused[0].positions.union(*(one.positions for one in refused))
            )
        return Settled(
            held=results[0].held.intersection(*(result.held for result in results)),
            count=sum(result.count for result in results),
            duplicates=sum(result.duplicates for result in results),
            lost=results[0].lost.union(*(result.lost for result in results)),
        )

    async def _isolating(
        self,
        epochs: Epochs,
        entries: Sequence[Entry],
        work: Work,
        results: list[Settled],
        refused: list[RowsRefusedError],
    ) -> None:
        try:
            results.append(
                await self._connection.write(lambda db: work(db, entries) if self._owns(db, epochs) else LOST)
            )
        except RowsRefusedError as error:
            first = entries[0]
            # The copies of one message are written together or not at all.
            units = [list(unit) for _, unit in groupby(entries, key=itemgetter(0, 1))]
            if len(units) > 1:
                half = len(units) // 2
                await self._isolating(epochs, list(chain(*units[:half])), work, results, refused)
                await self._isolating(epochs, list(chain(*units[half:])), work, results, refused)
            elif first.outcome == "dead":
                refused.append(RowsRefusedError(str(error), positions=[(first.id, first.destination)]))
            else:
                await self._isolating(epochs, [_refused(entries, str(error))], self._settle, results, refused)

    def _owns(self, db: sqlite3.Connection, epochs: Epochs) -> bool:
        (epoch,) = db.execute(self._sql("lane_epoch")).fetchone()
        return bool(epoch == epochs.get(LANE))

    def _lay(self, db: sqlite3.Connection, entries: Iterable[Entry]) -> None:
        db.execute(self._sql("clear_settlement"))
        db.execute(self._sql("fill_settlement"), {"messages": json.dumps(list(entries))})

    def _drop_repeats(self, db: sqlite3.Connection) -> int:
        """Mark messages that are already pending for their new destination; returns how many are duplicates."""
        outcomes = db.execute(self._sql("find_duplicates")).fetchall()
        return outcomes.count(("repeat",))


def _refused(entries: Sequence[Entry], error: str) -> Entry:
    """A message whose row the database refuses becomes a dead letter, under the destination it was meant for."""
    first = entries[0]
    resolved = first.resolved if len(entries) == 1 else first.destination
    what = "it was delivered, and its settlement" if first.outcome == "delivered" else "its settlement"
    told = legible(f"{what} was refused: {error}; correct the row or the constraint, then retry or discard it")
    return Entry(first.id, first.destination, resolved, "dead", error=told)


def _delivered(decisions: Sequence[Decision]) -> str:
    """As `delivered_at_once` reads them; those that were answered together have everything but the id in common."""
    groups: defaultdict[tuple[str, str, float | None], list[int]] = defaultdict(list)
    for message, _, destination, seconds in decisions:
        groups[message.destination, destination, seconds].append(message.id)
    nested: dict[str, dict[str, dict[float | None, list[int]]]] = {}
    for (waits_for, destination, seconds), ids in groups.items():
        nested.setdefault(waits_for, {}).setdefault(destination, {})[seconds] = ids
    return json.dumps(nested)


def _settled(decision: Decision) -> Entry:
    message, outcome, destination, seconds = decision
    entry = Entry(message.id, message.destination, destination, "delivered", seconds=seconds)
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
    return entry._replace(counted=outcome.counted, noted=outcome.noted, error=legible(outcome.error))
