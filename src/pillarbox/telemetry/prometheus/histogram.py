"""A histogram that observes a batch of values at once: one update of the sum and of each bucket, not one per value.

It extends prometheus_client's histogram and exposes the same series.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from pillarbox.telemetry.prometheus.client import Histogram


class BatchHistogram(Histogram):
    """A `Histogram` with `observe_all`."""

    def observe_all(self, values: Sequence[float]) -> None:
        """Observe every value."""
        internals: Any = self  # prometheus_client does not type them
        try:
            bounds, buckets, total = internals._upper_bounds, internals._buckets, internals._sum
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
