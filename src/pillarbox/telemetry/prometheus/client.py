"""Imports of prometheus_client, bounded labels, and the buckets of every histogram.

Invariants: no label holds a key, an id or another value that grows with the events; the number of series is bounded,
whatever arrives.
"""

from __future__ import annotations

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.registry import Collector
except ImportError as missing:  # pragma: no cover - shown by the test of the bare wheel
    raise ImportError('metrics need prometheus-client: pip install "pillarbox[metrics]"') from missing

__all__ = [
    "LAG",
    "MOST_DESTINATIONS",
    "MOST_EVENT_TYPES",
    "OTHER",
    "WORK",
    "Bounded",
    "Collector",
    "CollectorRegistry",
    "Counter",
    "Gauge",
    "GaugeMetricFamily",
    "Histogram",
]

OTHER = "other"
"""The label value of everything above the bound."""
MOST_DESTINATIONS = 100
MOST_EVENT_TYPES = 50

WORK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Buckets, in seconds, for the duration of a send, a fetch, a settlement or a handler."""
LAG = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 21600.0)
"""Buckets, in seconds, for the time from recording to confirmation."""


class Bounded:
    """Limits the values of one label: the first `most` are kept, all others become `other`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if not value.isprintable():
            value = ascii(value)[1:-1]  # a lone surrogate would break every scrape
        if value not in self._known:
            if len(self._known) >= self._most:
                return OTHER
            self._known.add(value)
        return value
