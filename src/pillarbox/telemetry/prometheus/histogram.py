"""A histogram that takes the values of a batch at once: one update of the sum and of each bucket, not one per value.

It is prometheus_client's histogram, and exposes what that would have exposed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from pillarbox.telemetry.prometheus.client import Histogram


class BatchHistogram(Histogram):
    """A `Histogram` with `observe_all`."""

    def observe_all(self, values: Sequence[float]) -> None:
        """Observe each of them."""
        try:
            bounds, buckets, total = self._upper_bounds, self._buckets, self._sum
        except AttributeError:  # a release of prometheus_client that names them otherwise
            for value in values:
                self.observe(value)
            return
        counts: dict[int, int] = {}
        for value in values:
            place = bisect_left(bounds, value)
            counts[place] = counts.get(place, 0) + 1
        total.inc(sum(values))
        for place, count in counts.items():
            buckets[place].inc(count)
