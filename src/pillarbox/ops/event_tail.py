"""Follow events, from pages of a list that is ordered by the time of recording.

A query reads the events that are newer than those of the previous query, and then sweeps again over older ones: an
event has the time at which its transaction began, so that it can appear below events that were already shown.
Invariants:

- an event is shown once as recorded and once for each final state, however often it is read;
- no event is missed whose transaction took no longer than the overlap: a sweep goes down to the newest event at the
  beginning of the previous sweep, less the overlap, so that this sweep or the next one reads every later commit;
- a query, also the first one, reads a bounded number of rows. If it does not reach the events of the previous query,
  the result says so, and sweeps read the rest; the result also names the time before which no event is shown;
- pending events below all sweeps are read one by one, a limited number per query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.listing import EventDetail, EventFilter, ListedEvent, Position
from pillarbox.core.message import Status

OVERLAP = 60.0
PAGE = 500
PAGES = 10
"""Pages that a query reads of new events, and again of its sweep."""
SINGLE_READS = 20
"""Events that one query reads one by one."""
FOLLOWED = 10_000
"""Pending events that are followed beyond the overlap; above that, the oldest are dropped."""
_TICK = timedelta(milliseconds=1)
"""The coarsest resolution of a store's clock."""

ChangeKind = Literal["recorded", "retried", "delivered", "dead-lettered", "gone"]
"""`gone`: the event is in no table any more: delivered without history, discarded, or pruned."""


class Change(NamedTuple):
    """A change of an event's state."""

    at: datetime
    kind: ChangeKind
    event: ListedEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class TailResult:
    """The result of one query, in the order of time."""

    changes: Sequence[Change]
    incomplete: bool = False
    """There were more new events than a query reads: the older ones follow with the next queries."""
    gap: datetime | None = None
    """The first query did not reach further: events recorded before this time are not shown."""


@dataclass(slots=True, kw_only=True)
class _Known:
    """The states of an event that were shown."""

    recorded_at: datetime
    polled: int = 0
    """The number of the query that read it last."""
    seen: dict[str, ListedEvent] = field(default_factory=dict)
    """Destination → the last state; '' until the event has a route."""

    @property
    def waits(self) -> bool:
        return any(
            event.status in (Status.PENDING, Status.PROCESSING)
            for destination, event in self.seen.items()
            if destination or len(self.seen) == 1
        )


@dataclass(slots=True, kw_only=True)
class _Sweep:
    """A sweep from the newest event down to `floor`, over several queries if it is long."""

    began: int
    top: datetime | None
    floor: datetime | None
    after: Position | None = None


class Tail:
    """Follows the events that match a filter; `since` None: those recorded from now on."""

    def __init__(
        self,
        store: AdminStore,
        wanted: EventFilter,
        *,
        since: datetime | None = None,
        overlap: float = OVERLAP,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._wanted = wanted
        self._since = since
        self._overlap = timedelta(seconds=overlap)
        self._now = now
        self._polls = 0
        self._top: datetime | None = None
        self._sweep: _Sweep | None = None
        # An id may be recorded again, so that the time is part of the key; a retried dead letter keeps its time.
        self._known: dict[tuple[str, datetime], _Known] = {}

    async def poll(self) -> TailResult:
        """Return the changes since the previous query; the first time, the events since `since`, if it is given.

        Raises StoreUnavailableError.
        """
        self._polls += 1
        top = await self._newest()
        if self._polls == 1:
            return await self._first(top)
        fresh, end = await self._down(max(filter(None, (self._top, self._since)), default=None))
        changes = self._changes(fresh) + await self._sweep_changes(top) + await self._single_changes()
        self._top = top or self._top
        return TailResult(changes=sorted(changes, key=lambda change: change.at), incomplete=end is not None)

    async def _first(self, top: datetime | None) -> TailResult:
        if self._since is None:
            return await self._from_now_on(top)
        rows, end = await self._down(self._since)
        floor = self._before(top)
        self._top, self._sweep = top, _Sweep(began=self._polls, top=top, floor=floor, after=end)
        gap = None if end is None else await self._unreached(end, floor)
        return TailResult(
            changes=sorted(self._changes(rows), key=lambda change: change.at), incomplete=end is not None, gap=gap
        )

    async def _from_now_on(self, top: datetime | None) -> TailResult:
        rows, end = await self._down(self._before(top))
        self._changes(rows)
        if end is not None:
            # Earlier events are not shown, so that no sweep may go below those that were read.
            self._since = end.recorded_at + _TICK
        self._top, self._sweep = top, _Sweep(began=self._polls, top=top, floor=self._before(top))
        return TailResult(changes=(), gap=self._since)

    async def _unreached(self, end: Position, floor: datetime | None) -> datetime | None:
        """Return the time that this query or a sweep reaches; None if there is no event below."""
        edge = end if floor is None or end.recorded_at < floor else Position(floor, 0, "")
        below = await self._store.admin.events.list(replace(self._wanted, since=self._since), limit=1, after=edge)
        return edge.recorded_at if below.events or below.after else None

    async def _newest(self) -> datetime | None:
        """Return the time of the newest event, whether it matches or not."""
        page = await self._store.admin.events.list(EventFilter(), limit=1)
        if not page.events:
            return self._top
        # A plain SQL producer may write a time in the future, which would hide all events before it.
        return min(page.events[0].recorded_at, self._now() + self._overlap)

    def _before(self, top: datetime | None) -> datetime | None:
        floor = None if top is None else top - self._overlap
        return max(floor or self._since, self._since) if self._since else floor

    async def _down(
        self, since: datetime | None, *, after: Position | None = None
    ) -> tuple[list[ListedEvent], Position | None]:
        """Read rows from the newest down; returns them, the oldest first, and the position to continue from."""
        wanted, rows = replace(self._wanted, since=since), list[ListedEvent]()
        for _ in range(PAGES):
            page = await self._store.admin.events.list(wanted, limit=PAGE, after=after)
            rows += page.events
            after = page.after
            if after is None:
                break
        return rows[::-1], after

    async def _sweep_changes(self, top: datetime | None) -> list[Change]:
        sweep = self._sweep or _Sweep(began=self._polls, top=top, floor=None)
        if sweep.began < self._polls and sweep.after is None:
            sweep = _Sweep(began=self._polls, top=top, floor=self._before(sweep.top))
        rows, sweep.after = await self._down(sweep.floor, after=sweep.after)
        changes = self._changes(rows)
        if sweep.after is None:
            self._forget(sweep)
        self._sweep = sweep
        return changes

    def _changes(self, rows: Iterable[ListedEvent]) -> list[Change]:
        changes: list[Change] = []
        for event in rows:
            identity = event.event_id, event.recorded_at
            if (known := self._known.get(identity)) is None:
                known = self._known[identity] = _Known(recorded_at=event.recorded_at)
                changes.append(Change(event.recorded_at, "recorded", event))
            changes += _changes_between(known.seen.get(event.destination, known.seen.get("")), event)
            known.polled = self._polls
            known.seen[event.destination] = event
        return changes

    async def _single_changes(self) -> list[Change]:
        """Read the pending events that the last complete sweep did not read: much older ones, and deleted ones."""
        if self._sweep is None or self._sweep.after is not None:
            return []
        left = [known for known in self._known.values() if known.waits and known.polled < self._sweep.began]
        changes: list[Change] = []
        for known in sorted(left, key=lambda known: known.polled)[:SINGLE_READS]:
            last = next(iter(known.seen.values()))
            story = await self._store.admin.events.show(last.event_id)
            rows = [
                _listed(detail)
                for detail in story.events
                if detail.recorded_at == known.recorded_at and self._wanted.destination in (None, detail.destination)
            ]
            changes += self._changes(rows)
            if not rows:
                changes.append(Change(self._now(), "gone", last))
                del self._known[last.event_id, known.recorded_at]
        return changes

    def _forget(self, sweep: _Sweep) -> None:
        """Forget finished events below the sweep, and the oldest of too many pending ones."""
        if sweep.floor is None:
            return
        below = [identity for identity, known in self._known.items() if known.recorded_at < sweep.floor]
        waiting = [identity for identity in below if self._known[identity].waits]
        for identity in {*below} - {*waiting} | {*waiting[: max(0, len(waiting) - FOLLOWED)]}:
            del self._known[identity]


def _changes_between(before: ListedEvent | None, now: ListedEvent) -> list[Change]:
    """Return the changes of an event since it was last read."""
    changes: list[Change] = []
    if now.retry_count > (before.retry_count if before else 0) and now.status is not Status.FAILED:
        changes.append(Change(now.last_attempt_at or now.recorded_at, "retried", now))
    if before is None or before.status is not now.status:
        if now.status is Status.PUBLISHED:
            changes.append(Change(now.published_at or now.recorded_at, "delivered", now))
        elif now.status is Status.FAILED:
            changes.append(Change(now.last_attempt_at or now.recorded_at, "dead-lettered", now))
    return changes


def _listed(detail: EventDetail) -> ListedEvent:
    return ListedEvent._make(getattr(detail, name) for name in ListedEvent._fields)
