"""A histogram that observes a batch of values at once: one update of the sum and of each bucket, not one per value.

It extends prometheus_client's histogram and exposes the same series.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from pillarbox.telemetry.prometheus.client import Histogram


class BatchHistogram(Histogram):
    """A `Histogram` with `observe_all`."""

    def observe_all(self, values: Sequence[float]) -> None:
        """Observe every value."""
        try:
            bounds, buckets, total = self._upper_bounds, self._buckets, self._sum
        except AttributeError:  # another release of prometheus_client may name its internals differently
            for value in values:
                self.observe(value)
            return
        counts: dict[int, int] = {}
        for value in values:
            bucket = bisect_left(bounds, value)
            counts[bucket] = counts.get(bucket, 0) + 1
        total.inc(sum(values))
        for bucket, count in counts.items():
            buckets[bucket].inc(count)
