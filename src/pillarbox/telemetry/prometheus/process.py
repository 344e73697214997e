"""Metrics that every process of Pillarbox serves: what it is, what it uses, and to which outbox its series belong."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client import GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import Metric

from pillarbox.telemetry.prometheus.client import CollectorRegistry, Gauge


def add_process_metrics(registry: CollectorRegistry) -> None:
    """Add the release, and CPU, memory, descriptors and garbage collections of the process."""
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    add_build_info(registry)


def add_build_info(registry: CollectorRegistry) -> None:
    """Add the release as `outbox_build_info`."""
    build = Gauge(
        "outbox_build_info", "1: the release of Pillarbox and of Python.", ["version", "python"], registry=registry
    )
    build.labels(version("pillarbox"), platform.python_version()).set(1)


class OutboxRegistry(CollectorRegistry):
    """The metrics of another registry, each with the label `outbox`: one Prometheus can have several outboxes."""

    def __init__(self, registry: CollectorRegistry, outbox: str) -> None:
        super().__init__()
        self._registry = registry
        self._outbox = outbox

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            labelled = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            labelled.samples = [
                sample._replace(labels={"outbox": self._outbox, **sample.labels}) for sample in metric.samples
            ]
            yield labelled
