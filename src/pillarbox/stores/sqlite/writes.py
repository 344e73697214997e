"""What became of it: each verb is one transaction that compares the epoch first, whatever the size of the batch.

`BEGIN IMMEDIATE` makes the transaction the only writer, so the epoch it saw is the epoch it commits under. The messages
of a write are laid on a desk, a temporary table, and every statement works from there: their number is constant.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, assert_never

from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import Held
from pillarbox.core.outcome import Dead, Delivered, Released, Resolved, Retry, Split, Verdict, legible
from pillarbox.stores.sqlite.connection import Connection
from pillarbox.stores.sqlite.lanes import LANE
from pillarbox.stores.sqlite.statements import Statements

OURS = frozenset({LANE})
LOST = Settled(held=frozenset(), count=0, lost=OURS)


class Entry(NamedTuple):
    """One message on the desk, as `desk_lay.sql` reads it."""

    id: int
    destination: str
    resolved: str
    outcome: str
    charge: bool = False
    noted: bool = False
    delay: float | None = None
    error: str | None = None
    attempts: int | None = None
    """Those before this one, where one is counted."""
    tries: int | None = None
    seconds: float | None = None


class SqliteWrites:
    """See `pillarbox.core.store.Writes`."""

    def __init__(self, connection: Connection, statements: Statements, *, history: bool, ledger: bool) -> None:
        self._connection = connection
        self._history = history
        self._ledger = ledger
        self._sql = statements.get

    async def settle(self, epochs: Epochs, verdicts: Sequence[Verdict]) -> Settled:
        entries = [entry for verdict in verdicts if (entry := _settled(verdict)) is not None]

        def work(db: sqlite3.Connection) -> Settled:
            self._lay(db, entries)
            db.execute(self._sql("resolve"))
            duplicates = self._drop_repeats(db)
            db.execute(self._sql("attempts"))
            if self._history:
                db.execute(self._sql("deliver"))
            db.execute(self._sql("bury"))
            if self._ledger:
                db.execute(self._sql("ledger_settle"))
            count = db.execute(self._sql("remove")).rowcount
            count += db.execute(self._sql("place")).rowcount
            db.execute(self._sql("progress"))
            return Settled(held=OURS, count=count - duplicates, duplicates=duplicates)

        return await self._fenced(epochs, entries, work)

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        entries = [Entry(*message.place, destination, "hold") for message, destination in messages]
        return await self._stay(epochs, entries, "hold", {"held": held.value})

    async def note(
        self, epochs: Epochs, messages: Sequence[Resolved], *, error: str, charge: bool = False, noted: bool = False
    ) -> Settled:
        entries = [
            Entry(*message.place, destination, "note", attempts=message.attempts, tries=message.tries)
            for message, destination in messages
        ]
        given = {"error": legible(error), "charge": charge, "noted": noted}
        return await self._stay(epochs, entries, "note", given)

    async def _stay(
        self, epochs: Epochs, entries: Sequence[Entry], statement: str, given: Mapping[str, object]
    ) -> Settled:
        """Write something about messages that go on waiting, from now on under their resolved destination."""

        def work(db: sqlite3.Connection) -> Settled:
            self._lay(db, entries)
            db.execute(self._sql("resolve"))
            duplicates = self._drop_repeats(db)
            db.execute(self._sql("bury"))
            db.execute(self._sql("remove"))
            count = db.execute(self._sql(statement), given).rowcount
            return Settled(held=OURS, count=count, duplicates=duplicates)

        return await self._fenced(epochs, entries, work)

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        entries = [
            Entry(*message.place, destination, "split")
            for message, destinations in splits
            for destination in destinations
        ]

        def work(db: sqlite3.Connection) -> Settled:
            self._lay(db, entries)
            count = db.execute(self._sql("split_copy")).rowcount
            duplicates = self._drop_repeats(db)
            db.execute(self._sql("bury"))
            db.execute(self._sql("split_replace"))
            return Settled(held=OURS, count=count, duplicates=duplicates)

        return await self._fenced(epochs, entries, work)

    async def carry_out(self, epochs: Epochs, *, limit: int = 100) -> int:
        def work(db: sqlite3.Connection) -> int:
            if not self._owns(db, epochs):
                return 0
            requests = db.execute(self._sql("requests"), {"limit": limit})
            columns = [column for column, *_ in requests.description]
            asked = [dict(zip(columns, row, strict=True)) for row in requests.fetchall()]
            for request in asked:
                self._carry_out(db, request)
            return len(asked)

        return await self._connection.write(work)

    def _carry_out(self, db: sqlite3.Connection, request: dict[str, object]) -> None:
        again = request["action"] in ("retry", "reschedule")
        if request["action"] == "bury":
            db.execute(self._sql("request_bury"), request)
        # An earlier request of the same bite may have discarded the message: only the count tells.
        done = db.execute(self._sql("request_again" if again else "request_discard"), request).rowcount
        result = "done" if done else "not found"
        db.execute(self._sql("request_close"), {"request_id": request["request_id"], "result": result})
        if not done:
            return
        if request["act"] is None:
            db.execute(self._sql("request_audit"), request)
        else:
            db.execute(self._sql("act_grow"), {"act": request["act"], "done": done})

    async def _fenced(
        self, epochs: Epochs, entries: Sequence[Entry], work: Callable[[sqlite3.Connection], Settled]
    ) -> Settled:
        if not entries:
            return Settled(held=frozenset(), count=0)
        return await self._connection.write(lambda db: work(db) if self._owns(db, epochs) else LOST)

    def _owns(self, db: sqlite3.Connection, epochs: Epochs) -> bool:
        (epoch,) = db.execute(self._sql("fence")).fetchone()
        return bool(epoch == epochs.get(LANE))

    def _lay(self, db: sqlite3.Connection, entries: Iterable[Entry]) -> None:
        db.execute(self._sql("desk_clear"))
        db.execute(self._sql("desk_lay"), {"messages": json.dumps(list(entries))})

    def _drop_repeats(self, db: sqlite3.Connection) -> int:
        """Mark what already waits under its new destination; returns how many are mere repeats."""
        outcomes = db.execute(self._sql("repeats")).fetchall()
        return outcomes.count(("repeat",))


def _settled(verdict: Verdict) -> Entry | None:
    message, outcome, destination, seconds = verdict
    entry = Entry(*message.place, destination, "delivered", seconds=seconds)
    match outcome:
        case Delivered():
            return entry
        case Retry(delay=delay):
            entry = entry._replace(outcome="retry", delay=delay, attempts=message.attempts, tries=message.tries)
        case Dead(block=True):
            entry = entry._replace(outcome="blocked", attempts=message.attempts, tries=message.tries)
        case Dead():
            entry = entry._replace(outcome="dead")
        case Released():
            return None
        case _:
            assert_never(outcome)
    return entry._replace(charge=outcome.charge, noted=outcome.noted, error=legible(outcome.error))
