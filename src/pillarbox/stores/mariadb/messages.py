"""Fetches messages. Fetches lock nothing, scan no messages on hold, and never continue from a position.

MariaDB has no LATERAL: a fetch is one SELECT per lane, or per ordering queue, joined in one statement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, assert_never

from pillarbox.core.fetch import Bounds, Due, Fetched, FetchQuery, NextInQueues, OrphanedQueues, Parked, Ready
from pillarbox.core.message import EARLIEST, LATEST, EarlierQuery, KeyQueue, Message, message_of
from pillarbox.stores.mariadb.connection import MariaDBStoreConnection, Step, Steps
from pillarbox.stores.mariadb.driver import Rows
from pillarbox.stores.mariadb.statements import MariaDBStatements, PreparedText, prepared
from pillarbox.stores.mariadb.wakeup import MariaDBArrivals

_BEFORE_ALL = KeyQueue(-1, "", "")
_ANY_SIZE = 1 << 62
ENTRIES = 1000
"""Entries of the index that one statement reads in the search for orphaned queues."""
_by_sequence = attrgetter("id")
_by_time = attrgetter("available_at", "id")
_PAYLOAD, _MUST_WAIT = Message._fields.index("payload"), Message._fields.index("must_wait")


class MariaDBMessages:
    """See `pillarbox.core.fetch.Messages`."""

    def __init__(
        self, connection: MariaDBStoreConnection, statements: MariaDBStatements, arrivals: MariaDBArrivals
    ) -> None:
        self._connection = connection
        self._arrivals = arrivals
        self._sql = statements.get
        self._templates = _Templates(statements)
        self._outside = statements.get("first_outside_range")
        self._lanes: dict[int, int] = {}
        """Sequence → lane of messages in flight: each part of a fetch leaves out those of its own lane."""

    async def fetch(self, query: FetchQuery) -> Fetched:
        bounds = query.bounds
        lanes = [queue.lane for queue in query.queues] if isinstance(query, NextInQueues) else query.lanes
        if not lanes or bounds.limit < 1 or (isinstance(query, Parked) and not query.destinations):
            return Fetched()
        fetch = _Fetch(self._templates, bounds, self._flying(bounds.in_flight))
        rows = await self._decided(await self._run(query, fetch, lanes))
        found = Fetched(_message(row) for row in rows if row[_PAYLOAD] is not None)
        if left_out := [row for row in rows if row[_PAYLOAD] is None]:
            found.left_out = _message(left_out[0]).without_content()
        if len(self._lanes) > len(bounds.in_flight) + 10_000:
            self._lanes.clear()  # learned again with the next fetches; until then they are left out everywhere
        if found and isinstance(query, Ready):
            self._arrivals.fetched(max(message.id for message in found))
        self._lanes.update((message.id, message.lane) for message in found)
        found.sort(key=_by_time if isinstance(query, Due) else _by_sequence)
        return found

    async def _run(self, query: FetchQuery, fetch: _Fetch, lanes: Sequence[int]) -> Rows:
        if not fetch.ranged and not isinstance(query, NextInQueues):
            return await self._connection.fetch(*fetch.step(query, []))
        return await self._connection.snapshot(self._steps(query, fetch, lanes))

    def _steps(self, query: FetchQuery, fetch: _Fetch, lanes: Sequence[int]) -> Steps[Rows]:
        """A fetch that needs more than one statement: all of them in one snapshot."""
        if fetch.ranged:
            fetch.given["lanes"] = [*lanes]
            outside = (yield self._outside, fetch.given | fetch.times()).rows
            fetch.given["outside"] = [[*row] for row in outside]
        blockers: list[int] = []
        if isinstance(query, NextInQueues):
            find = self._templates.of_lanes("find_blockers", lanes)
            blockers = [row[0] for row in (yield find, {"queues": [[*queue] for queue in query.queues]}).rows]
        return (yield fetch.step(query, blockers)).rows

    async def _decided(self, rows: Rows) -> Rows:
        """The rows of a fetch; what it left open because many delayed events are due is read once per key."""
        left_open = [(n, _message(row)) for n, row in enumerate(rows) if row[_MUST_WAIT] is None]
        if not left_open:
            return rows
        queries = [EarlierQuery(m.lane, m.key or "", m.destination, m.id) for _, m in left_open]
        decided = [*rows]
        for (n, _), must_wait in zip(left_open, await self.earlier(queries), strict=True):
            decided[n] = (*rows[n][:_MUST_WAIT], must_wait)
        return decided

    def _flying(self, in_flight: Collection[tuple[int, str]]) -> _InFlight:
        flying = _InFlight()
        for sequence, destination in in_flight:
            flying.add(self._lanes.get(sequence), sequence, destination)
        return flying

    async def earlier(self, queries: Sequence[EarlierQuery]) -> list[bool]:
        tell = self._templates.of_lanes("has_earlier", [query.lane for query in queries])
        rows = await self._connection.fetch(tell, {"queries": [[*query] for query in queries]})
        return [bool(row[0]) for row in rows]

    async def orphaned_queues(
        self, lanes: Sequence[int], *, limit: int, after: KeyQueue | None = None
    ) -> OrphanedQueues:
        return await self._connection.snapshot(self._orphaned(lanes, limit, after or _BEFORE_ALL))

    def _orphaned(self, lanes: Sequence[int], limit: int, after: KeyQueue) -> Steps[OrphanedQueues]:
        seen: dict[KeyQueue, None] = {}
        while len(seen) < limit:
            given = {"lanes": [*lanes], "entries": ENTRIES, **after._asdict()}
            rows = (yield self._sql("next_waiting_queues"), given).rows
            seen |= dict.fromkeys(KeyQueue(*row) for row in rows)
            if len(rows) < ENTRIES:
                break
            after = KeyQueue(*rows[-1])
        queues = list(seen)[:limit]
        if not queues:
            return OrphanedQueues([], None)
        find = self._templates.of_lanes("find_orphaned_queues", lanes)
        answers = (yield find, {"queues": [[*queue] for queue in queues]}).rows
        orphaned = [queue for queue, (answer,) in zip(queues, answers, strict=True) if answer]
        return OrphanedQueues(orphaned, queues[-1] if len(queues) == limit else None)

    async def parked_destinations(self, lanes: Sequence[int]) -> list[str]:
        if not lanes:
            return []
        return await self._connection.snapshot(self._parked(lanes))

    def _parked(self, lanes: Sequence[int]) -> Steps[list[str]]:
        """One statement for each destination, whatever is parked for it."""
        found: list[str] = []
        while True:
            # Messages without a destination may be parked, too.
            beyond = ">" if found else ">="
            parts = (self._sql("next_parked_in_lane", number=str(int(lane)), beyond=beyond) for lane in lanes)
            sql = self._sql("next_parked_destination", parked=self._templates.add_part.join(parts))
            [(destination,)] = (yield sql, {"after": found[-1] if found else ""}).rows
            if destination is None:
                return found
            found.append(destination)


class _InFlight:
    """The messages that a fetch leaves out, by lane; those whose lane is not known are left out of every lane."""

    def __init__(self) -> None:
        self._ids: defaultdict[int | None, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        self.names: dict[str, str] = {}
        """Destination → its parameter."""

    def add(self, lane: int | None, sequence: int, destination: str) -> None:
        self._ids[lane][destination].append(sequence)
        if destination not in self.names:
            self.names[destination] = f"flying_{len(self.names)}"

    def of(self, lane: int) -> Iterator[tuple[str, str]]:
        """Those of a lane: the parameter of a destination, and the sequences of its messages."""
        for known in (lane, None):
            if known in self._ids:
                for destination, ids in self._ids[known].items():
                    yield f"%({self.names[destination]})s", str(ids)[1:-1]


class _Templates:
    """The statements of fetches, rendered once: what differs from fetch to fetch is put in as text."""

    def __init__(self, statements: MariaDBStatements) -> None:
        self._statements = statements
        self._ready: dict[tuple[str, ...], str] = {}
        self.add_part = f"\n{statements.get('add_part')}\n"

    def fill(self, name: str, *variants: str, **values: str) -> str:
        """A statement or a part of one, with texts that the driver takes as they are."""
        template = self._ready.get((name, *variants))
        if template is None:
            marks = {hole: f"<<{hole}>>" for hole in values}
            template = self._ready[name, *variants] = prepared(self._statements.get(name, *variants, **marks))
        for hole, value in values.items():
            template = template.replace(f"<<{hole}>>", value)
        return template

    def of_lanes(self, name: str, lanes: Iterable[int], *variants: str, **values: str) -> PreparedText:
        """A statement that reads what is due in some lanes."""
        own_lanes = str(sorted({int(lane) for lane in lanes}))[1:-1]
        return PreparedText(self.fill(name, *variants, own_lanes=own_lanes or "NULL", **values))


class _Fetch:
    """Builds the statement of one fetch."""

    def __init__(self, templates: _Templates, bounds: Bounds, flying: _InFlight) -> None:
        self._fill, self._of_lanes = templates.fill, templates.of_lanes
        self._add_part = templates.add_part
        self._bounds = bounds
        self._flying = flying
        self.ranged = bool(bounds.recorded_after or bounds.recorded_before)
        self._variants = ("in_range",) if self.ranged else ()
        self.given: dict[str, object] = {
            "limit": bounds.limit,
            "quota": bounds.quota,
            "bytes": bounds.max_bytes,
            "alone": _ANY_SIZE if bounds.alone else 0,
            "after": bounds.recorded_after,
            "before": bounds.recorded_before,
            **{name: destination for destination, name in flying.names.items()},
        }

    def times(self) -> dict[str, object]:
        """The range of times with its ends."""
        return {"after": self._bounds.recorded_after or EARLIEST, "before": self._bounds.recorded_before or LATEST}

    def step(self, query: FetchQuery, blockers: Sequence[int]) -> Step:
        """The statement and its parameters."""
        variants = () if isinstance(query, NextInQueues) else ("checked",)
        picked = self._add_part.join(self._parts(query, blockers))
        lanes = () if isinstance(query, NextInQueues) else query.lanes
        return self._of_lanes("fetch", lanes, *variants, picked=picked), self.given

    def _parts(self, query: FetchQuery, blockers: Sequence[int]) -> Iterator[str]:
        match query:
            case Ready():
                return (self._part("pick_ready", n, lane) for n, lane in enumerate(query.lanes))
            case Due():
                return (self._part("pick_due", n, lane) for n, lane in enumerate(query.lanes))
            case Parked():
                return self._parked(query)
            case NextInQueues():
                return self._waiting(query, blockers)
            case _:
                assert_never(query)

    def _parked(self, query: Parked) -> Iterator[str]:
        destinations = [self._parameter("parked", n, name) for n, name in enumerate(dict.fromkeys(query.destinations))]
        for n, lane in enumerate(query.lanes):
            each = [self._part("pick_parked_for", n, lane, destination=name) for name in destinations]
            yield self._fill("pick_parked", n=str(n), parked=self._add_part.join(each))

    def _waiting(self, query: NextInQueues, blockers: Sequence[int]) -> Iterator[str]:
        for n, (queue, blocker) in enumerate(zip(query.queues, blockers, strict=True)):
            key = self._parameter("key", n, queue.key)
            destination = self._parameter("destination", n, queue.destination)
            yield self._part("pick_waiting", n, queue.lane, key=key, destination=destination, blocker=str(blocker))

    def _part(self, name: str, n: int, lane: int, **values: str) -> str:
        flying = " ".join(
            self._fill("skip_in_flight", flying=parameter, ids=ids) for parameter, ids in self._flying.of(lane)
        )
        return self._fill(name, *self._variants, n=str(n), number=str(int(lane)), not_in_flight=flying, **values)

    def _parameter(self, kind: str, n: int, value: str) -> str:
        name = f"{kind}_{n}"
        self.given[name] = value
        return f"%({name})s"


def _message(row: Sequence[Any]) -> Message:
    return message_of((*row[:_MUST_WAIT], bool(row[_MUST_WAIT])))
