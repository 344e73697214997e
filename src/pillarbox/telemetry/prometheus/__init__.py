"""Prometheus metrics of relays, stores, consumers and recording: four sources, each with its own registry by default.

This package does not serve them. `pillarbox relay` with `relay.listen` does, and an application can.
"""

from pillarbox.telemetry.prometheus.consumer import ConsumerMetrics
from pillarbox.telemetry.prometheus.record import RecordMetrics
from pillarbox.telemetry.prometheus.relay import RelayMetrics
from pillarbox.telemetry.prometheus.store import StoreMetrics

__all__ = ["ConsumerMetrics", "RecordMetrics", "RelayMetrics", "StoreMetrics"]
