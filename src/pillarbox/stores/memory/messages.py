"""What there is to do. Lanes (or lines) are served in turn, so that a full one leaves room for the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, assert_never

from pillarbox.core.fetch import Bounds, Due, Fetched, FetchQuery, NextInQueues, OrphanedQueues, Parked, Ready
from pillarbox.core.message import Held, KeyQueue, Message, Probe
from pillarbox.stores.memory.tables import Place, Stored, Tables, concerns, verb

_by_place = attrgetter("id", "destination")
_by_time = attrgetter("available_at", "id", "destination")


class MemoryMessages:
    """See `pillarbox.core.fetch.Messages`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @verb
    def read(self, query: FetchQuery) -> Fetched:
        match query:
            case Ready():
                lines = (self._rows(self._tables.lanes[lane].ready) for lane in query.lanes)
                return self._fetched(self._bounded(lines, query.bounds), key=_by_place)
            case Due():
                lines = (self._due(lane) for lane in query.lanes)
                return self._fetched(self._bounded(lines, query.bounds), key=_by_time)
            case Parked():
                lines = (self._aside(lane, query.destinations) for lane in query.lanes)
                return self._fetched(self._bounded(lines, query.bounds), key=_by_place)
            case NextInQueues():
                lines = (self._tables.waiting_in(queue) for queue in query.queues)
                return self._fetched(self._bounded(lines, query.bounds), key=_by_place, flag=False)
            case _:
                assert_never(query)

    @verb
    def earlier(self, probes: Sequence[Probe]) -> list[bool]:
        return [self._tables.earlier(KeyQueue(p.lane, p.key, p.destination), p.id) for p in probes]

    @verb
    def orphaned_queues(self, lanes: Sequence[int], *, limit: int, after: KeyQueue | None = None) -> OrphanedQueues:
        lines = sorted(queue for queue in self._lines(lanes) if after is None or queue > after)
        looked_at = lines[:limit]
        found = [queue for queue in looked_at if any(True for _ in self._tables.waiting_in(queue))]
        return OrphanedQueues(found, looked_at[-1] if len(lines) > limit else None)

    @verb
    def parked_destinations(self, lanes: Sequence[int]) -> list[str]:
        return sorted({name for lane in lanes for name, places in self._tables.lanes[lane].parked.items() if places})

    def _fetched(
        self, found: tuple[list[Stored], Stored | None], *, key: Callable[[Message], Any], flag: bool = True
    ) -> Fetched:
        taken, left_out = found
        messages = (self._flagged(stored) if flag else stored.message for stored in taken)
        fetched = Fetched(sorted(messages, key=key))
        if left_out is not None:
            fetched.left_out = left_out.message.without_content()
        return fetched

    def _bounded(self, lines: Iterable[Iterator[Stored]], bounds: Bounds) -> tuple[list[Stored], Stored | None]:
        in_flight = frozenset(bounds.in_flight)
        open_to = self._range(bounds)
        return _in_turn(
            ((s for s in line if s.message.position not in in_flight and open_to(s.message)) for line in lines), bounds
        )

    def _range(self, bounds: Bounds) -> Callable[[Message], bool]:
        """Whether a message lies in the range, and everything before it in its line too."""
        if bounds.recorded_after is None and bounds.recorded_before is None:
            return lambda _: True
        outside: defaultdict[str, list[Message]] = defaultdict(list)
        for stored in self._tables.waiting.values():
            if stored.message.key is not None and not bounds.covers(stored.message.recorded_at):
                outside[stored.message.key].append(stored.message)

        def open_to(m: Message) -> bool:
            others = outside[m.key] if m.key is not None else ()
            return bounds.covers(m.recorded_at) and not any(o.id < m.id and concerns(m.destination, o) for o in others)

        return open_to

    def _rows(self, places: Iterable[Place]) -> Iterator[Stored]:
        return (self._tables.places[place] for place in places)

    def _due(self, lane: int) -> Iterator[Stored]:
        now = self._tables.now()
        for available_at, number, destination in self._tables.lanes[lane].scheduled:
            if available_at > now:
                return
            yield self._tables.places[number, destination]

    def _aside(self, lane: int, destinations: Sequence[str]) -> Iterator[Stored]:
        parked = self._tables.lanes[lane].parked
        return self._rows(sorted(place for name in set(destinations) for place in parked.get(name, ())))

    def _flagged(self, stored: Stored) -> Message:
        m = stored.message
        if m.key is not None and self._tables.earlier(KeyQueue(m.lane, m.key, m.destination), m.id):
            return m._replace(must_wait=True)
        return m

    def _lines(self, lanes: Sequence[int]) -> set[KeyQueue]:
        return {
            KeyQueue(lane, key, stored.message.destination)
            for lane in lanes
            for key in self._tables.lanes[lane].keys
            for stored in self._tables.of_key(lane, key)
            if stored.message.held == Held.WAITING
        }


def _in_turn(lines: Iterable[Iterator[Stored]], bounds: Bounds) -> tuple[list[Stored], Stored | None]:
    """One of each line in turn, until a bound is met, and the first that did not fit into the bytes; a line is never
    continued past that."""
    queue: list[Iterator[Stored]] = [islice(line, bounds.quota) for line in lines]
    taken: list[Stored] = []
    size = 0
    while queue:
        going_on: list[Iterator[Stored]] = []
        for line in queue:
            stored = next(line, None)
            if stored is None:
                continue
            if len(taken) == bounds.limit:
                return taken, None
            size += stored.message.size
            if size > bounds.max_bytes and (taken or not bounds.alone):
                return taken, stored
            taken.append(stored)
            going_on.append(line)
        queue = going_on
    return taken, None
