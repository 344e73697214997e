"""The state of the outbox and the inbox."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta

from pillarbox.admin.destinations import RECENT, DestinationLoad, OverrideChange, PendingGroup, RecentDelivery
from pillarbox.admin.overview import ConsumerView, LaneView, Overview, RelayView
from pillarbox.admin.states import EventState, StateCount, StateCounts, combined
from pillarbox.core.message import Held, Message
from pillarbox.core.statistics import CONSUMER_STATISTICS_AGE, COUNTED, ConsumerStatistics
from pillarbox.stores.memory.destinations import is_overridden
from pillarbox.stores.memory.events import stored_state
from pillarbox.stores.memory.tables import Tables, atomic


class MemoryInspection:
    """See `pillarbox.admin.overview.Inspection`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @atomic
    def overview(self, *, counted: int = COUNTED) -> Overview:
        return overview_of(self._tables)

    @atomic
    def states(self) -> StateCounts:
        tables = self._tables
        reported = {(one.event_id, one.destination) for relay in tables.alive_relays() for one in relay.in_flight}
        waiting = [stored.message for stored in tables.waiting.values()]
        stored = Counter(stored_state(message) for message in waiting)
        in_flight = Counter(stored_state(message) for message in waiting if message.identity in reported)
        return combined(
            stored,
            in_flight,
            pending=len(waiting),
            published=StateCount(len(tables.history)),
            dead_letters=len(tables.dead),
        )

    @atomic
    def destinations(self) -> DestinationLoad:
        tables, now = self._tables, self._tables.now()
        waiting = [stored.message for stored in tables.waiting.values()]
        groups: defaultdict[tuple[str, str, str | None, EventState], list[Message]] = defaultdict(list)
        for message in waiting:
            kind = ("", None) if message.destination else (message.event_type, message.aggregate_type)
            groups[message.destination, *kind, stored_state(message)].append(message)
        lately: defaultdict[str, list[float]] = defaultdict(list)
        for row in tables.history.values():
            message = row.stored.message
            if (age := (now - message.recorded_at).total_seconds()) <= RECENT:
                lately[message.destination].append(age)
        return DestinationLoad(
            [PendingGroup(*kind, *_load(messages, now)) for kind, messages in groups.items()],
            [RecentDelivery(name, len(ages), max(ages)) for name, ages in lately.items()],
            [
                OverrideChange(name, row.changed_by, row.changed_at)
                for name, row in sorted(tables.destinations.items())
                if row.changed_by is not None and row.changed_at is not None and is_overridden(row.override)
            ],
        )

    @atomic
    def relays(self) -> list[RelayView]:
        return _relays(self._tables)

    @atomic
    def consumers(self, *, limit: int = 100) -> list[ConsumerView]:
        records = Counter(record.consumer for record in self._tables.inbox)
        names = sorted({*records, *(one.consumer for _, one in self._tables.consumer_statistics)})
        return [self._consumer(name, min(records[name], COUNTED + 1)) for name in names[:limit]]

    def _consumer(self, name: str, records: int) -> ConsumerView:
        limit = self._tables.after(-CONSUMER_STATISTICS_AGE)
        lately = [(at, one) for at, one in self._tables.consumer_statistics if one.consumer == name and at > limit]
        if not lately:
            return ConsumerView(name, records)
        failures = [_failure(at, one) for at, one in lately if one.failed_ago is not None]
        last_failed_at, last_error = max(failures, default=(None, None))
        return ConsumerView(
            name,
            records,
            sum(one.processed for _, one in lately),
            sum(one.duplicates for _, one in lately),
            sum(one.failures for _, one in lately),
            sum(one.dead_lettered for _, one in lately),
            last_error,
            last_failed_at,
        )


def overview_of(tables: Tables) -> Overview:
    """Backlog, dead letters, blocked keys, lanes and relays. The caller holds the lock."""
    now = tables.now()
    waiting = [stored.message for stored in tables.waiting.values()]
    due = [(at, one.id, one.event_id) for one in waiting if (at := _since(one)) <= now]
    since, _, oldest_event = min(due, default=(None, 0, None))
    return Overview(
        backlog=len(waiting),
        oldest=(now - since).total_seconds() if since else None,
        exact=True,
        dead=min(len(tables.dead), COUNTED + 1),
        lanes=[LaneView(number, lane.owner, lane.epoch, lane.crashes) for number, lane in enumerate(tables.lanes)],
        relays=_relays(tables),
        blocked=min(sum(one.held == Held.BLOCKED for one in waiting), COUNTED + 1),
        oldest_event=oldest_event,
        recorded=tables.recorded,
    )


def _relays(tables: Tables) -> list[RelayView]:
    now = tables.now()
    return [
        RelayView(
            relay.registration.id,
            relay.registration.name,
            relay.registration.host,
            relay.lease_end - tables.elapsed(),
            dict(relay.breakers),
            relay.registration.version,
            (now - relay.started_at).total_seconds(),
            len(relay.in_flight),
            relay.draining,
            relay.stalled,
        )
        for _, relay in sorted(tables.relays.items())
    ]


def _failure(at: datetime, statistics: ConsumerStatistics) -> tuple[datetime, str]:
    return at - timedelta(seconds=statistics.failed_ago or 0.0), statistics.last_error or ""


def _load(messages: list[Message], now: datetime) -> tuple[int, float | None, int, float | None]:
    """How many, the age of the oldest, how many are recent, and the age of the first of these."""
    ages = [(now - since).total_seconds() for one in messages if (since := _since(one)) <= now]
    recent = [one for one in messages if (now - one.recorded_at).total_seconds() <= RECENT]
    first = [(now - since).total_seconds() for one in recent if (since := _since(one)) <= now]
    return len(messages), max(ages, default=None), len(recent), max(first, default=None)


def _since(m: Message) -> datetime:
    """Since when it could have been sent: a delayed event since it is due."""
    return m.recorded_at if m.available_at is None or m.held or m.attempts + m.deferrals else m.available_at
