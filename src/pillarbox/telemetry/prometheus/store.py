"""Metrics of a store. The process that queries the store passes the result in: a scrape itself runs no query.

If the store is unreachable, its gauges are absent, because an old value would look like a current one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pillarbox.admin.overview import Overview
from pillarbox.telemetry.prometheus.client import Collector, CollectorRegistry, GaugeMetricFamily


class StoreMetrics(Collector):
    """Gauges of one store; `registry` is what to serve."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry if registry is not None else CollectorRegistry()
        self._seen: Overview | None = None
        self._depths: Mapping[str, int] = {}
        self.registry.register(self)

    def show(self, seen: Overview | None, *, queues: Mapping[str, int] | None = None) -> None:
        """seen: `await store.admin.inspection.overview()`, or None if the store is unreachable.
        queues: dead-letter queues of a broker, and the number of messages in each."""
        self._seen = seen
        self._depths = queues or {}

    def collect(self) -> Iterator[GaugeMetricFamily]:
        up, backlog, oldest, dead, blocked, relays, unowned, depths = self._families()
        seen, queues = self._seen, self._depths
        up.add_metric([], seen is not None)
        if seen is not None:
            alive = {relay.id for relay in seen.relays if relay.lease > 0}
            backlog.add_metric([], seen.backlog)
            oldest.add_metric([], seen.oldest or 0.0)
            dead.add_metric([], seen.dead)
            blocked.add_metric([], seen.blocked)
            relays.add_metric([], len(alive))
            unowned.add_metric([], sum(lane.owner not in alive for lane in seen.lanes))
        for queue, depth in queues.items():
            depths.add_metric([queue], depth)
        yield from (up, backlog, oldest, dead, blocked, relays, unowned, depths)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families()

    def _families(self) -> tuple[GaugeMetricFamily, ...]:
        return (
            GaugeMetricFamily("outbox_store_up", "1 if the last query of the store succeeded."),
            GaugeMetricFamily("outbox_backlog", "Pending messages; above 10,000 an estimate."),
            GaugeMetricFamily(
                "outbox_oldest_age_seconds", "Time since the oldest pending message became due; 0 if there is none."
            ),
            GaugeMetricFamily("outbox_dead_letters", "Dead letters; 10,001 stands for more."),
            GaugeMetricFamily("outbox_keys_blocked", "Keys blocked until an operator decides; 10,001 stands for more."),
            GaugeMetricFamily("outbox_relays", "Relays with a valid lease, in all processes."),
            GaugeMetricFamily("outbox_lanes_unowned", "Lanes without a running owner."),
            GaugeMetricFamily(
                "outbox_dead_letter_queue_depth", "Messages in a dead-letter queue of a broker.", labels=["queue"]
            ),
        )
