"""Settles and holds messages: one or a few statements per batch, each of them fenced.

No lock is held across a round trip: a statement locks its lanes, compares their epochs, writes and commits. A relay
runs its writes one after another, because a statement that waited for a lock still uses its old snapshot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, assert_never

from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import (
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
from pillarbox.stores.postgres.arrays import literal
from pillarbox.stores.postgres.connection import PostgresStoreConnection
from pillarbox.stores.postgres.engine import PostgresEngine
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.refused_rows import IsolatingWriter, refusal_text


class RequeueRow(NamedTuple):
    """The next state of a message; the columns of `requeue`."""

    event_id: str
    destination: str
    id: int
    resolved: str
    held: str | None = None
    delay: float | None = None
    more_attempts: int = 0
    more_deferrals: int = 0
    error: str | None = None
    stays: bool = False
    attempts: int | None = None
    """Attempts before this one, if one is counted."""
    deferrals: int | None = None
    recorded: bool = False
    """Whether it is written to the failed attempts."""
    seconds: float | None = None


class DeadLetterRow(NamedTuple):
    """One dead-lettered message; the columns of `dead_letter`."""

    event_id: str
    destination: str
    id: int
    resolved: str
    more_attempts: int
    error: str
    sent: bool
    seconds: float | None


class MessageRows(NamedTuple):
    """One message and the rows that a statement gets for it: they are written together or not at all."""

    message: Message
    rows: Sequence[DeadLetterRow] | Sequence[RequeueRow]


Units = Sequence[MessageRows] | Sequence[Decision]
"""What one statement writes. Delivered messages, of which there are most, go as their decisions: they need no rows."""


class PostgresWrites:
    """See `pillarbox.core.outcome.Writes`."""

    def __init__(
        self, connection: PostgresStoreConnection, statements: PostgresStatements, *, history: bool, ledger: bool
    ) -> None:
        self._connection = connection
        self._requests = SqlRequests(PostgresEngine(self._connection, statements))
        variants = ("ledger",) if ledger else ()
        self._deliver = statements.get("deliver" if history else "deliver_without_history", *variants)
        self._history = history
        self._dead_letter = statements.get("dead_letter", *variants)
        self._settle_place = statements.get("requeue", "settled")
        self._place = statements.get("requeue")
        self._execute_requests = statements.get("execute_requests")
        self._refuse = statements.get("reject_request")

    async def settle(self, epochs: Epochs, decisions: Sequence[Decision]) -> Settled:
        arrivals = [decision for decision in decisions if isinstance(decision.outcome, Delivered)]
        dead_letters: list[MessageRows] = []
        placements: list[MessageRows] = []
        for message, outcome, destination, seconds in decisions if len(arrivals) < len(decisions) else ():
            match outcome:
                case Delivered():
                    continue
                case Dead(block=False):
                    more, error = _more_attempts(outcome), sanitize_error(outcome.error)
                    row = DeadLetterRow(*_row(message), destination, more, error, outcome.counted, seconds)
                    dead_letters.append(MessageRows(message, [row]))
                case Retry() | Dead():
                    placements.append(MessageRows(message, [_waits(message, outcome, destination, seconds)]))
                case _:
                    assert_never(outcome)
        return await self._all(
            epochs, [(self._deliver, arrivals), (self._dead_letter, dead_letters), (self._settle_place, placements)]
        )

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        return await self._put(
            epochs,
            [
                MessageRows(message, [RequeueRow(*_row(message), destination, held=held.value)])
                for message, destination in messages
            ],
        )

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        return await self._put(
            epochs,
            [
                MessageRows(
                    message, [RequeueRow(*_row(message), destination, stays=True) for destination in destinations]
                )
                for message, destinations in splits
            ],
        )

    async def count_attempt(
        self,
        epochs: Epochs,
        messages: Sequence[Resolved],
        *,
        error: str,
        counted: bool = False,
        counted_before_send: bool = False,
    ) -> Settled:
        attempts, deferrals, text = counted - counted_before_send, int(not counted), sanitize_error(error)

        def placed(message: Message, resolved: str) -> RequeueRow:
            before = (message.attempts, message.deferrals)
            return RequeueRow(*_row(message), resolved, None, None, attempts, deferrals, text, True, *before)

        return await self._put(
            epochs, [MessageRows(message, [placed(message, resolved)]) for message, resolved in messages]
        )

    async def execute_requests(
        self, epochs: Epochs, *, limit: int = 100, in_flight: Collection[tuple[int, str]] = ()
    ) -> RequestResults:
        known = literal(epochs), literal(epochs.values())
        in_flight_columns = (
            literal(sequence for sequence, _ in in_flight),
            literal(destination for _, destination in in_flight),
        )
        try:
            [row] = await self._connection.fetch(self._execute_requests, *known, limit, *in_flight_columns)
        except RowsRefusedError as error:
            if limit > 1:
                # The others come with the next calls, once the one that is refused is closed.
                return await self.execute_requests(epochs, limit=limit // 10 or 1, in_flight=in_flight)
            [row] = await self._connection.fetch(self._refuse, *known, sanitize_error(str(error)), *in_flight_columns)
            return RequestResults(row["count"], [])
        return RequestResults(
            row["count"], list(zip(map(int, row["deferred_ids"]), row["deferred_destinations"], strict=True))
        )

    async def request_retry(self, events: Sequence[tuple[str, str]], *, by: str) -> None:
        await self._requests.add("retry", events, by=by)

    async def _put(self, epochs: Epochs, units: Sequence[MessageRows]) -> Settled:
        return await self._all(epochs, [(self._place, units)])

    async def _all(self, epochs: Epochs, writes: Sequence[tuple[str, Units]]) -> Settled:
        """Run one statement after another, each for its units."""
        if len(given := [(sql, units) for sql, units in writes if units]) == 1:
            [(sql, units)] = given
            with suppress(RowsRefusedError):  # the statements below find the row
                return await self._write(sql, epochs, units)
        writer: IsolatingWriter[MessageRows | Decision] = IsolatingWriter(
            dead_letter=partial(self._dead_letter_refused, epochs), position=_position
        )
        for sql, units in given:
            await writer.run(units, partial(self._write, sql, epochs))
        return writer.settled()

    def _dead_letter_refused(
        self, epochs: Epochs, units: Sequence[MessageRows | Decision], error: str
    ) -> Awaitable[Settled] | None:
        [unit] = units
        if isinstance(unit, Decision):
            resolved = unit.destination
        elif isinstance(unit.rows[0], DeadLetterRow):
            return None
        else:
            resolved = unit.rows[0].resolved if len(unit.rows) == 1 else unit.message.destination
        told = sanitize_error(refusal_text(error, delivered=isinstance(unit, Decision)))
        row = DeadLetterRow(*_row(unit.message), resolved, 0, told, False, None)
        return self._write(self._dead_letter, epochs, [MessageRows(unit.message, [row])])

    async def _write(self, sql: str, epochs: Epochs, units: Sequence[MessageRows | Decision]) -> Settled:
        lanes = {unit.message.lane for unit in units}
        return await self._run(sql, epochs, lanes, _columns(units, history=self._history))

    async def _run(
        self, sql: str, epochs: Epochs, lanes: Iterable[int], columns: Iterable[Iterable[object]]
    ) -> Settled:
        wanted = sorted(lanes)
        # A lane without an epoch is not ours: -1 matches no row.
        tokens = [epochs.get(lane, -1) for lane in wanted]
        [row] = await self._connection.fetch(sql, *map(literal, (wanted, tokens, *columns)))
        lost = frozenset(wanted).difference(map(int, row["held"]))
        return Settled(count=row["count"], duplicates=row["duplicates"], lost=lost)


def _position(units: Sequence[MessageRows | Decision]) -> tuple[int, str]:
    return units[0].message.position


def _row(message: Message) -> tuple[str, str, int]:
    """The key of a row, and its sequence, which tells it from another one with the same event id and destination."""
    return message.event_id, message.destination, message.id


def _waits(message: Message, outcome: Retry | Dead, destination: str, seconds: float | None) -> RequeueRow:
    placement = RequeueRow(
        *_row(message),
        destination,
        more_attempts=_more_attempts(outcome),
        error=sanitize_error(outcome.error),
        attempts=message.attempts,
        deferrals=message.deferrals,
        seconds=seconds,
    )
    if isinstance(outcome, Dead):
        return placement._replace(held=Held.BLOCKED.value, recorded=outcome.counted)
    return placement._replace(
        delay=min(outcome.delay, MAX_DELAY), more_deferrals=int(not outcome.counted), recorded=True
    )


def _more_attempts(outcome: Retry | Dead) -> int:
    return int(outcome.counted) - int(outcome.counted_before_send)


def _columns(units: Sequence[MessageRows | Decision], *, history: bool) -> list[list[object]]:
    """The arrays that the statement for these units takes: `deliver` takes the seconds of each send as well,
    `deliver_without_history` does not."""
    delivered = [unit for unit in units if isinstance(unit, Decision)]
    if not delivered:
        rows = [row for unit in units if isinstance(unit, MessageRows) for row in unit.rows]
        return [list(column) for column in zip(*rows, strict=True)]
    messages = [decision.message for decision in delivered]
    columns: list[list[object]] = [
        [message.event_id for message in messages],
        [message.destination for message in messages],
        [message.id for message in messages],
        [decision.destination for decision in delivered],
    ]
    return [*columns, [decision.seconds for decision in delivered]] if history else columns
