"""The state of outbox and inbox, in a few short statements."""

from __future__ import annotations

import json
from typing import Any

from pillarbox.admin.destinations import (
    RECENT,
    SCANNED,
    DestinationLoad,
    OverrideChange,
    PendingGroup,
    RecentDelivery,
)
from pillarbox.admin.overview import ConsumerView, LaneView, Overview, RelayView
from pillarbox.admin.states import STORED, EventState, StateCounts, combined, up_to_limit
from pillarbox.core.statistics import CONSUMER_STATISTICS_AGE, COUNTED, Backlog
from pillarbox.stores.admin.engine import Engine, ResultRow, decode_optional_time


class SqlInspection:
    """See `pillarbox.admin.overview.Inspection`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._overview = [engine.statement(name) for name in ("overview", "overview_lanes", "overview_relays")]
        self._states = [engine.statement(name) for name in ("count_states", "count_in_flight")]
        self._destinations = [
            engine.statement(name) for name in ("pending_by_destination", "recent_deliveries", "override_changes")
        ]
        self._relays = engine.statement("overview_relays")
        self._consumers = engine.statement("list_consumers")

    async def overview(self, *, counted: int = COUNTED) -> Overview:
        given = {"counted": counted, "most": COUNTED, "beyond": COUNTED + 1, "one_beyond_counted": counted + 1}
        [totals], lanes, relays = await self._engine.read_all(self._overview, given)
        backlog, oldest, exact, dead, blocked, oldest_event, recorded = totals
        return Overview(
            backlog=backlog,
            oldest=oldest,
            exact=bool(exact),
            dead=dead,
            lanes=[LaneView(*row) for row in lanes],
            relays=[_relay(row) for row in relays],
            blocked=blocked,
            oldest_event=oldest_event,
            recorded=int(recorded),
        )

    async def backlog(self) -> Backlog:
        """See `pillarbox.core.store.Statistics`."""
        seen = await self.overview()
        alive = {relay.id for relay in seen.relays if relay.lease > 0}
        unowned = any(lane.owner not in alive for lane in seen.lanes)
        return Backlog(seen.backlog, seen.oldest, seen.dead, seen.recorded, unowned)

    async def states(self) -> StateCounts:
        [counts], in_flight = await self._engine.read_all(self._states, {"beyond": COUNTED + 1})
        *stored, retrying_complete, dead, delivered, pending_estimate, delivered_estimate = counts
        return combined(
            dict(zip(STORED, stored, strict=True)),
            {EventState(state): count for state, count in in_flight},
            pending=None if pending_estimate is None else int(pending_estimate),
            retrying_complete=bool(retrying_complete),
            published=up_to_limit(delivered, None if delivered_estimate is None else int(delivered_estimate)),
            dead_letters=dead,
        )

    async def destinations(self) -> DestinationLoad:
        pending, delivered, changes = await self._engine.read_all(
            self._destinations, {"half": SCANNED // 2, "seconds": RECENT}
        )
        return DestinationLoad(
            [self._pending_group(*row) for row in pending],
            [RecentDelivery(name, count, self._age(first, now) or 0.0) for name, count, first, now in delivered],
            [OverrideChange(name, by, self._engine.decode_time(at)) for name, by, at in changes],
        )

    def _pending_group(self, *row: Any) -> PendingGroup:
        destination, event_type, aggregate_type, state, count, oldest, recent, first_recent, now = row
        return PendingGroup(
            destination,
            event_type,
            aggregate_type,
            EventState(state),
            count,
            self._age(oldest, now),
            int(recent),
            self._age(first_recent, now),
        )

    def _age(self, since: Any, now: Any) -> float | None:
        if since is None:
            return None
        return max(0.0, (self._engine.decode_time(now) - self._engine.decode_time(since)).total_seconds())

    async def relays(self) -> list[RelayView]:
        return [_relay(row) for row in await self._engine.read(self._relays, {})]

    async def consumers(self, *, limit: int = 100) -> list[ConsumerView]:
        given = {"limit": limit, "most": COUNTED + 1, "lately": CONSUMER_STATISTICS_AGE}
        rows = await self._engine.read(self._consumers, given)
        return [
            ConsumerView._make([*facts, decode_optional_time(self._engine, failed_at)]) for *facts, failed_at in rows
        ]


def _relay(row: ResultRow) -> RelayView:
    *registration, breakers, version, age, in_flight, draining, stalled = row
    return RelayView._make([*registration, json.loads(breakers), version, age, in_flight, bool(draining), stalled])
