"""Reads the metrics of a registry."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pillarbox.telemetry.prometheus import ConsumerMetrics, RecordMetrics, RelayMetrics, StoreMetrics
from pillarbox.telemetry.prometheus.process import add_build_info


def families(registry: CollectorRegistry) -> dict[str, tuple[str, str]]:
    """Name without suffix → kind and help; without `_created` series."""
    found = text_string_to_metric_families(generate_latest(registry).decode())
    named = {f"{one.name}_total" if one.type == "counter" else one.name: (one.type, one.documentation) for one in found}
    return {name: about for name, about in named.items() if not name.endswith("_created")}


def samples(registry: CollectorRegistry) -> set[str]:
    """The names of all series."""
    return {
        f"{name}{suffix}"
        for name, (kind, _) in families(registry).items()
        for suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
    }


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    """The value of a series; None if it does not exist."""
    return registry.get_sample_value(name, labels)


def everything() -> CollectorRegistry:
    """A registry with all metrics."""
    registry = CollectorRegistry()
    for kind in (RelayMetrics, StoreMetrics, ConsumerMetrics, RecordMetrics):
        kind(registry)
    add_build_info(registry)
    return registry
