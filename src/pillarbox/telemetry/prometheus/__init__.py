"""What is announced, as metrics for Prometheus: four sources of figures, each with a registry of its own unless it is
given one. Nothing here serves them; `pillarbox relay` with `relay.listen` does, and so does any application of yours.
"""

from pillarbox.telemetry.prometheus.consumer import ConsumerMetrics
from pillarbox.telemetry.prometheus.record import RecordMetrics
from pillarbox.telemetry.prometheus.relay import RelayMetrics
from pillarbox.telemetry.prometheus.store import StoreMetrics

__all__ = ["ConsumerMetrics", "RecordMetrics", "RelayMetrics", "StoreMetrics"]
