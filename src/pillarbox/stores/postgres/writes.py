"""What became of it: each verb is one or a few statements whatever the batch, and every one is fenced.

Nothing that takes locks stays open across a round trip: a statement locks its lanes, compares their epochs, writes and
commits. A relay runs its writes one after another, since a statement that waited for a lock still judges by its old
snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, assert_never

from pillarbox.core.lane import Epochs, Settled
from pillarbox.core.message import Held, Message
from pillarbox.core.outcome import LONGEST_DELAY, Dead, Delivered, Released, Resolved, Retry, Split, Verdict, legible
from pillarbox.stores.postgres.connection import Connection
from pillarbox.stores.postgres.statements import Statements

NOTHING = Settled(held=frozenset(), count=0)


class Placement(NamedTuple):
    """Where one message waits from now on; the columns of `place.sql`."""

    event_id: str
    destination: str
    resolved: str
    held: str | None = None
    delay: float | None = None
    charged: int = 0
    tried: int = 0
    error: str | None = None
    stays: bool = False
    attempts: int | None = None
    """Those before this one, where one is counted."""
    tries: int | None = None
    remembered: bool = False
    """Among the failed attempts."""
    seconds: float | None = None


class Burial(NamedTuple):
    """One message given up on; the columns of `bury.sql`."""

    event_id: str
    destination: str
    resolved: str
    charged: int
    error: str
    sent: bool
    seconds: float | None


class Arrival(NamedTuple):
    """One delivered message; the columns of `deliver.sql`, of which `deliver_forget.sql` leaves out the last."""

    event_id: str
    destination: str
    resolved: str
    seconds: float | None


class PostgresWrites:
    """See `pillarbox.core.store.Writes`."""

    def __init__(self, connection: Connection, statements: Statements, *, history: bool, ledger: bool) -> None:
        self._connection = connection
        delivered, failed = ("ledger_delivered", "ledger_failed") if ledger else (None, None)
        self._deliver = statements.fenced("deliver" if history else "deliver_forget", progress=True, ledger=delivered)
        self._arrival = len(Arrival._fields) - (not history)
        self._bury = statements.fenced("bury", progress=True, ledger=failed)
        self._settle_place = statements.fenced("place", progress=True)
        self._place = statements.fenced("place", progress=False)
        self._carry_out = statements.fenced("carry_out", progress=False)

    async def settle(self, epochs: Epochs, verdicts: Sequence[Verdict]) -> Settled:
        arrivals: list[Arrival] = []
        burials: list[Burial] = []
        placements: list[Placement] = []
        lanes: set[int] = set()
        for message, outcome, destination, seconds in verdicts:
            match outcome:
                case Delivered():
                    arrivals.append(Arrival(message.event_id, message.destination, destination, seconds))
                case Dead(block=False):
                    charged, error = _charged(outcome), legible(outcome.error)
                    burials.append(Burial(*message.identity, destination, charged, error, outcome.charge, seconds))
                case Retry() | Dead():
                    placements.append(_waits(message, outcome, destination, seconds))
                case Released():
                    continue
                case _:
                    assert_never(outcome)
            lanes.add(message.lane)
        results = []
        if arrivals:
            results.append(await self._run(self._deliver, epochs, lanes, *_columns(arrivals)[: self._arrival]))
        if burials:
            results.append(await self._run(self._bury, epochs, lanes, *_columns(burials)))
        if placements:
            results.append(await self._run(self._settle_place, epochs, lanes, *_columns(placements)))
        return _together(results)

    async def hold(self, epochs: Epochs, messages: Sequence[Resolved], held: Held) -> Settled:
        return await self._put(
            epochs,
            [message for message, _ in messages],
            [Placement(*message.identity, destination, held=held.value) for message, destination in messages],
        )

    async def split(self, epochs: Epochs, splits: Sequence[Split]) -> Settled:
        return await self._put(
            epochs,
            [message for message, _ in splits],
            [
                Placement(*message.identity, destination, stays=True)
                for message, destinations in splits
                for destination in destinations
            ],
        )

    async def note(
        self, epochs: Epochs, messages: Sequence[Resolved], *, error: str, charge: bool = False, noted: bool = False
    ) -> Settled:
        charged, tried, text = charge - noted, int(not charge), legible(error)
        return await self._put(
            epochs,
            [message for message, _ in messages],
            [
                Placement(
                    *message.identity, resolved, None, None, charged, tried, text, True, message.attempts, message.tries
                )
                for message, resolved in messages
            ],
        )

    async def carry_out(self, epochs: Epochs, *, limit: int = 100) -> int:
        return (await self._run(self._carry_out, epochs, epochs, limit)).count

    async def _put(self, epochs: Epochs, messages: Sequence[Message], placements: Sequence[Placement]) -> Settled:
        if not placements:
            return NOTHING
        lanes = {message.lane for message in messages}
        return await self._run(self._place, epochs, lanes, *_columns(placements))

    async def _run(self, sql: str, epochs: Epochs, lanes: Iterable[int], *arguments: object) -> Settled:
        wanted = sorted(lanes)
        # A lane without an epoch is not ours: -1 matches no row.
        tokens = [epochs.get(lane, -1) for lane in wanted]
        row = (await self._connection.fetch(sql, wanted, tokens, *arguments))[0]
        held = frozenset(row["held"])
        return Settled(held=held, count=row["count"], duplicates=row["duplicates"], lost=frozenset(wanted) - held)


def _waits(message: Message, outcome: Retry | Dead, destination: str, seconds: float | None) -> Placement:
    placement = Placement(
        *message.identity,
        destination,
        charged=_charged(outcome),
        error=legible(outcome.error),
        attempts=message.attempts,
        tries=message.tries,
        seconds=seconds,
    )
    if isinstance(outcome, Dead):
        return placement._replace(held=Held.BLOCKED.value, remembered=outcome.charge)
    return placement._replace(delay=min(outcome.delay, LONGEST_DELAY), tried=int(not outcome.charge), remembered=True)


def _charged(outcome: Retry | Dead) -> int:
    return int(outcome.charge) - int(outcome.noted)


def _columns(rows: Sequence[Arrival] | Sequence[Burial] | Sequence[Placement]) -> list[list[object]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _together(results: Sequence[Settled]) -> Settled:
    if len(results) == 1:
        return results[0]
    if not results:
        return NOTHING
    return Settled(
        # A lane that was lost between two statements is lost.
        held=frozenset.intersection(*(result.held for result in results)),
        count=sum(result.count for result in results),
        duplicates=sum(result.duplicates for result in results),
        lost=frozenset.union(*(result.lost for result in results)),
    )
