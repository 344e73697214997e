"""What a registry exposes, by name and labels."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pillarbox.telemetry.prometheus import ConsumerMetrics, RecordMetrics, RelayMetrics, StoreMetrics


def families(registry: CollectorRegistry) -> dict[str, tuple[str, str]]:
    """Name as people write it → kind and what it means; without the times at which series began."""
    found = text_string_to_metric_families(generate_latest(registry).decode())
    named = {f"{one.name}_total" if one.type == "counter" else one.name: (one.type, one.documentation) for one in found}
    return {name: about for name, about in named.items() if not name.endswith("_created")}


def samples(registry: CollectorRegistry) -> set[str]:
    """The name of every series that a query may ask for."""
    return {
        f"{name}{suffix}"
        for name, (kind, _) in families(registry).items()
        for suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",))
    }


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    """None: there is no such series."""
    return registry.get_sample_value(name, labels)


def everything() -> CollectorRegistry:
    """A registry with every metric there is."""
    registry = CollectorRegistry()
    for kind in (RelayMetrics, StoreMetrics, ConsumerMetrics, RecordMetrics):
        kind(registry)
    return registry
