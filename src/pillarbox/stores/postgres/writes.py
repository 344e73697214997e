"""Settles and holds messages: one or a few statements per batch, each of them fenced.

No lock is held across a round trip: a statement locks its lanes, compares their epochs, writes and commits. A relay
runs its writes one after another, because a statement that waited for a lock still uses its old snapshot.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, assert_never

from pillarbox.core.errors import RowsRefusedError
from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import LONGEST_DELAY, CarriedOut, Dead, Decision, Delivered, Resolved, Retry, Split, legible
from pillarbox.stores.admin.requests import SqlRequests
from pillarbox.stores.postgres.arrays import literal
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.dialect import PostgresDialect
from pillarbox.stores.postgres.statements import PostgresStatements

NOTHING = Settled(held=frozenset(), count=0)


class Placement(NamedTuple):
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


class Unit(NamedTuple):
    """One message and the rows that a statement gets for it: they are written together or not at all."""

    message: Message
    rows: Sequence[DeadLetterRow] | Sequence[Placement]


Units = Sequence[Unit] | Sequence[Decision]
"""What one statement writes. Delivered messages, of which there are most, go as their decisions: they need no rows."""


class PostgresWrites:
    """See `pillarbox.core.outcome.Writes`.

    A row that the database refuses for what is in it must not keep others from being written: the batch is halved until
    that row is alone, and it becomes a dead letter. If even that is refused, RowsRefusedError names it once all others
    are written.
    """

    def __init__(self, connection: Connection, statements: PostgresStatements, *, history: bool, ledger: bool) -> None:
        self._connection = connection
        self._requests = SqlRequests(PostgresDialect(self._connection, statements))
        noted = ("ledger",) if ledger else ()
        self._deliver = statements.get("deliver" if history else "deliver_without_history", *noted)
        self._history = history
        self._dead_letter = statements.get("dead_letter", *noted)
        self._settle_place = statements.get("requeue", "settled")
        self._place = statements.get("requeue")
        self._carry_out = statements.get("execute_requests")
        self._refuse = statements.get("reject_request")

    async def settle(self, epochs: Epochs, decisions: Sequence[Decision]) -> Settled:
        arrivals = [decision for decision in decisions if isinstance(decision.outcome, Delivered)]
        dead_letters: list[Unit] = []
        placements: list[Unit] = []
        for message, outcome, destination, seconds in decisions if len(arrivals) < len(decisions) else ():
            match outcome:
                case Delivered():
                    continue
                case Dead(block=False):
                    more, error = _more_attempts(outcome), legible(outcome.error)
                    row = DeadLetterRow(*_row(message), destination, more, error, outcome.counted, seconds)
                    dead_letters.append(Unit(message, [row]))
                case Retry() | Dead():
                    placements.append(Unit(message, [_waits(message, outcome, destination, seconds)]))
                case _:
                    assert_never(outcome)
        return await self._all(
            epochs, [(self._deliver, arrivals), (self._dead_letter, dead_letters), (self._settle_place, placements)]
        )

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        return await self._put(
            epochs,
            [
                Unit(message, [Placement(*_row(message), destination, held=held.value)])
                for message, destination in messages
            ],
        )

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        return await self._put(
            epochs,
            [
                Unit(message, [Placement(*_row(message), destination, stays=True) for destination in destinations])
                for message, destinations in splits
            ],
        )

    async def note(
        self, epochs: Epochs, messages: Sequence[Resolved], *, error: str, counted: bool = False, noted: bool = False
    ) -> Settled:
        attempts, deferrals, text = counted - noted, int(not counted), legible(error)

        def placed(message: Message, resolved: str) -> Placement:
            before = (message.attempts, message.deferrals)
            return Placement(*_row(message), resolved, None, None, attempts, deferrals, text, True, *before)

        return await self._put(epochs, [Unit(message, [placed(message, resolved)]) for message, resolved in messages])

    async def carry_out(
        self, epochs: Epochs, *, limit: int = 100, in_flight: Collection[tuple[int, str]] = ()
    ) -> CarriedOut:
        known = literal(epochs), literal(epochs.values())
        flying = literal(place[0] for place in in_flight), literal(place[1] for place in in_flight)
        try:
            [row] = await self._connection.fetch(self._carry_out, *known, limit, *flying)
        except RowsRefusedError as error:
            if limit > 1:
                # The others come with the next calls, once the one that is refused is closed.
                return await self.carry_out(epochs, limit=limit // 10 or 1, in_flight=in_flight)
            [row] = await self._connection.fetch(self._refuse, *known, legible(str(error)), *flying)
            return CarriedOut(row["count"], [])
        return CarriedOut(
            row["count"], list(zip(map(int, row["deferred_ids"]), row["deferred_destinations"], strict=True))
        )

    async def request_retry(self, events: Sequence[tuple[str, str]], *, by: str) -> None:
        await self._requests.add("retry", events, by=by)

    async def _put(self, epochs: Epochs, units: Sequence[Unit]) -> Settled:
        return await self._all(epochs, [(self._place, units)])

    async def _all(self, epochs: Epochs, writes: Sequence[tuple[str, Units]]) -> Settled:
        """Run one statement after another, each for its units."""
        results: list[Settled] = []
        refused: list[RowsRefusedError] = []
        for sql, units in writes:
            if units:
                await self._isolating(sql, epochs, units, results, refused)
        if refused:
            raise RowsRefusedError(
                str(refused[0]), positions=refused[0].positions.union(*(one.positions for one in refused))
            )
        return _together(results)

    async def _isolating(
        self, sql: str, epochs: Epochs, units: Units, results: list[Settled], refused: list[RowsRefusedError]
    ) -> None:
        lanes = {unit.message.lane for unit in units}
        try:
            results.append(await self._run(sql, epochs, lanes, _columns(units, history=self._history)))
        except RowsRefusedError as error:
            if len(units) > 1:
                half = len(units) // 2
                await self._isolating(sql, epochs, units[:half], results, refused)
                await self._isolating(sql, epochs, units[half:], results, refused)
            elif sql == self._dead_letter:
                refused.append(RowsRefusedError(str(error), positions=[units[0].message.position]))
            else:
                row = _refused(units[0], str(error))
                await self._isolating(self._dead_letter, epochs, [Unit(units[0].message, [row])], results, refused)

    async def _run(
        self, sql: str, epochs: Epochs, lanes: Iterable[int], columns: Iterable[Iterable[object]]
    ) -> Settled:
        wanted = sorted(lanes)
        # A lane without an epoch is not ours: -1 matches no row.
        tokens = [epochs.get(lane, -1) for lane in wanted]
        [row] = await self._connection.fetch(sql, *map(literal, (wanted, tokens, *columns)))
        held = frozenset(map(int, row["held"]))
        return Settled(held=held, count=row["count"], duplicates=row["duplicates"], lost=frozenset(wanted) - held)


def _refused(unit: Unit | Decision, error: str) -> DeadLetterRow:
    """A message whose row the database refuses becomes a dead letter, under the destination it was meant for."""
    if isinstance(unit, Decision):
        what, resolved = "it was delivered, and its settlement", unit.destination
    else:
        what, resolved = "its settlement", unit.rows[0].resolved if len(unit.rows) == 1 else unit.message.destination
    told = legible(f"{what} was refused: {error}; correct the row or the constraint, then retry or discard it")
    return DeadLetterRow(*_row(unit.message), resolved, 0, told, False, None)


def _row(message: Message) -> tuple[str, str, int]:
    """What a row is found by, and its place, which tells it from another one with the same event id and destination."""
    return message.event_id, message.destination, message.id


def _waits(message: Message, outcome: Retry | Dead, destination: str, seconds: float | None) -> Placement:
    placement = Placement(
        *_row(message),
        destination,
        more_attempts=_more_attempts(outcome),
        error=legible(outcome.error),
        attempts=message.attempts,
        deferrals=message.deferrals,
        seconds=seconds,
    )
    if isinstance(outcome, Dead):
        return placement._replace(held=Held.BLOCKED.value, recorded=outcome.counted)
    return placement._replace(
        delay=min(outcome.delay, LONGEST_DELAY), more_deferrals=int(not outcome.counted), recorded=True
    )


def _more_attempts(outcome: Retry | Dead) -> int:
    return int(outcome.counted) - int(outcome.noted)


def _columns(units: Units, *, history: bool) -> list[list[object]]:
    """The arrays that the statement for these units takes: `deliver` takes the seconds of each send as well,
    `deliver_without_history` does not."""
    delivered = [unit for unit in units if isinstance(unit, Decision)]
    if not delivered:
        rows = [row for unit in units if isinstance(unit, Unit) for row in unit.rows]
        return [list(column) for column in zip(*rows, strict=True)]
    messages = [decision.message for decision in delivered]
    columns: list[list[object]] = [
        [message.event_id for message in messages],
        [message.destination for message in messages],
        [message.id for message in messages],
        [decision.destination for decision in delivered],
    ]
    return [*columns, [decision.seconds for decision in delivered]] if history else columns


def _together(results: Sequence[Settled]) -> Settled:
    if len(results) == 1:
        return results[0]
    if not results:
        return NOTHING
    return Settled(
        # A lane that was lost between two statements is lost.
        held=results[0].held.intersection(*(result.held for result in results)),
        count=sum(result.count for result in results),
        duplicates=sum(result.duplicates for result in results),
        lost=results[0].lost.union(*(result.lost for result in results)),
    )
