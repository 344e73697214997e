"""What a benchmark says: figures, and which part limits the rate."""

from __future__ import annotations

from typing import Any

from pillarbox.ops.bench.measuring import Outcome, percentiles
from pillarbox.ops.bench.site import Site

ADVICE = {
    "relay": "the relay's CPU limits: run several relays, or give it a faster core",
    "store": "the store limits: look at the latency of its commits, and at its CPU and disk",
    "transport": "the transport limits: look at the broker's CPU and disk, and at the network to it",
}


def figures(site: Site, outcome: Outcome) -> dict[str, Any]:
    """The outcome for scripts."""
    whole = outcome.whole
    limits = {
        "relay": whole.events / whole.cpu,
        "store": outcome.store_alone.rate,
        "transport": outcome.transport_alone,
    }
    return {
        "store": site.settings.store.url.partition(":")[0],
        "transport": site.transport or None,
        "events": whole.events,
        "rate": round(whole.rate),
        "cpu_us_per_event": round(whole.cpu / whole.events * 1e6, 1),
        "cpu_share": round(whole.cpu / whole.seconds, 2),
        "latency_rate": round(outcome.latency_rate),
        "latency_ms": {name: round(value, 2) for name, value in percentiles(outcome.latencies).items()},
        "limits": {part: None if rate is None else round(rate) for part, rate in limits.items()},
        "limited_by": limited_by(limits),
    }


def limited_by(limits: dict[str, float | None]) -> str:
    """The part that alone is the slowest."""
    return min((part for part in limits if limits[part] is not None), key=lambda part: limits[part] or 0.0)


def facts(told: dict[str, Any]) -> list[tuple[str, str]]:
    """The same for people, a line each."""
    way = f"RabbitMQ ({told['transport']})" if told["transport"] else "a handler that does nothing"
    latency, limits = told["latency_ms"], told["limits"]
    alone = [f"{part} {rate:,}/s" for part, rate in limits.items() if rate is not None]
    return [
        ("path", f"{told['store']} to {way}"),
        ("rate", f"{told['rate']:,} events/s (a backlog of {told['events']:,})"),
        ("relay CPU", f"{told['cpu_us_per_event']} µs per event, {told['cpu_share']:.0%} of a core"),
        (
            "latency",
            f"p50 {latency['p50']} ms, p95 {latency['p95']} ms, p99 {latency['p99']} ms, max {latency['max']} ms",
        ),
        ("", f"from record to confirm, at {told['latency_rate']} events/s"),
        ("alone", ", ".join(alone)),
        ("limit", ADVICE[told["limited_by"]]),
    ]
