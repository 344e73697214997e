"""Fetches messages from lanes, or ordering queues, in turn, so that a full one does not starve the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, assert_never

from pillarbox.core.fetch import Bounds, Due, Fetched, FetchQuery, NextInQueues, OrphanedQueues, Parked, Ready
from pillarbox.core.message import EarlierQuery, Held, KeyQueue, Message
from pillarbox.stores.memory.tables import Position, StoredMessage, Tables, atomic, concerns

_by_position = attrgetter("id", "destination")
_by_time = attrgetter("available_at", "id", "destination")


class MemoryMessages:
    """See `pillarbox.core.fetch.Messages`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @atomic
    def fetch(self, query: FetchQuery) -> Fetched:
        match query:
            case Ready():
                sources = (self._rows(self._tables.lanes[lane].ready) for lane in query.lanes)
                return self._fetched(self._bounded(sources, query.bounds), key=_by_position)
            case Due():
                sources = (self._due(lane) for lane in query.lanes)
                return self._fetched(self._bounded(sources, query.bounds), key=_by_time)
            case Parked():
                sources = (self._parked(lane, query.destinations) for lane in query.lanes)
                return self._fetched(self._bounded(sources, query.bounds), key=_by_position)
            case NextInQueues():
                sources = (self._tables.waiting_in(queue) for queue in query.queues)
                return self._fetched(self._bounded(sources, query.bounds), key=_by_position, flag=False)
            case _:
                assert_never(query)

    @atomic
    def earlier(self, queries: Sequence[EarlierQuery]) -> list[bool]:
        return [self._tables.earlier(KeyQueue(p.lane, p.key, p.destination), p.id) for p in queries]

    @atomic
    def orphaned_queues(self, lanes: Sequence[int], *, limit: int, after: KeyQueue | None = None) -> OrphanedQueues:
        queues = sorted(queue for queue in self._waiting_queues(lanes) if after is None or queue > after)
        checked = queues[:limit]
        found = [queue for queue in checked if any(True for _ in self._tables.waiting_in(queue))]
        return OrphanedQueues(found, checked[-1] if len(queues) > limit else None)

    @atomic
    def parked_destinations(self, lanes: Sequence[int]) -> list[str]:
        return sorted(
            {name for lane in lanes for name, positions in self._tables.lanes[lane].parked.items() if positions}
        )

    def _fetched(
        self,
        found: tuple[list[StoredMessage], StoredMessage | None],
        *,
        key: Callable[[Message], Any],
        flag: bool = True,
    ) -> Fetched:
        taken, left_out = found
        messages = (self._flagged(stored) if flag else stored.message for stored in taken)
        fetched = Fetched(sorted(messages, key=key))
        if left_out is not None:
            fetched.left_out = left_out.message.without_content()
        return fetched

    def _bounded(
        self, sources: Iterable[Iterator[StoredMessage]], bounds: Bounds
    ) -> tuple[list[StoredMessage], StoredMessage | None]:
        in_flight = frozenset(bounds.in_flight)
        open_to = self._range(bounds)
        return _in_turn(
            ((s for s in source if s.message.position not in in_flight and open_to(s.message)) for source in sources),
            bounds,
        )

    def _range(self, bounds: Bounds) -> Callable[[Message], bool]:
        """Whether a message, and all earlier ones of its ordering queue, are in the range of times."""
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

    def _rows(self, positions: Iterable[Position]) -> Iterator[StoredMessage]:
        return (self._tables.positions[position] for position in positions)

    def _due(self, lane: int) -> Iterator[StoredMessage]:
        now = self._tables.now()
        for available_at, number, destination in self._tables.lanes[lane].scheduled:
            if available_at > now:
                return
            yield self._tables.positions[number, destination]

    def _parked(self, lane: int, destinations: Sequence[str]) -> Iterator[StoredMessage]:
        parked = self._tables.lanes[lane].parked
        return self._rows(sorted(position for name in set(destinations) for position in parked.get(name, ())))

    def _flagged(self, stored: StoredMessage) -> Message:
        m = stored.message
        if m.key is not None and self._tables.earlier(KeyQueue(m.lane, m.key, m.destination), m.id):
            return m._replace(must_wait=True)
        return m

    def _waiting_queues(self, lanes: Sequence[int]) -> set[KeyQueue]:
        return {
            KeyQueue(lane, key, stored.message.destination)
            for lane in lanes
            for key in self._tables.lanes[lane].keys
            for stored in self._tables.of_key(lane, key)
            if stored.message.held == Held.WAITING
        }


def _in_turn(
    sources: Iterable[Iterator[StoredMessage]], bounds: Bounds
) -> tuple[list[StoredMessage], StoredMessage | None]:
    """Take one of each source in turn until a bound is reached; also return the first that did not fit into the bytes.
    No source is continued after that."""
    active: list[Iterator[StoredMessage]] = [islice(source, bounds.quota) for source in sources]
    taken: list[StoredMessage] = []
    size = 0
    while active:
        remaining: list[Iterator[StoredMessage]] = []
        for source in active:
            stored = next(source, None)
            if stored is None:
                continue
            if len(taken) == bounds.limit:
                return taken, None
            size += stored.message.size
            if size > bounds.max_bytes and (taken or not bounds.alone):
                return taken, stored
            taken.append(stored)
            remaining.append(source)
        active = remaining
    return taken, None
