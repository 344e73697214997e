"""The report of a benchmark: results, and which part limits the rate."""

from __future__ import annotations

from typing import Any

from pillarbox.ops.bench.measurement import BenchmarkResult, percentiles
from pillarbox.ops.bench.target import BenchmarkTarget

ADVICE = {
    "relay": "the CPU of the relay is the limit: run several relays, or use a faster core",
    "store": "the store is the limit: check the latency of its commits, its CPU and its disk",
    "transport": "the transport is the limit: check the broker's CPU and disk, and the network",
}


def as_json(target: BenchmarkTarget, result: BenchmarkResult) -> dict[str, Any]:
    """Return the result as the JSON of `--json`."""
    whole = result.whole
    limits = {
        "relay": whole.events / whole.cpu,
        "store": result.store_alone.rate,
        "transport": result.transport_alone,
    }
    return {
        "store": target.settings.store.url.partition(":")[0],
        "transport": target.transport or None,
        "events": whole.events,
        "rate": round(whole.rate),
        "cpu_us_per_event": round(whole.cpu / whole.events * 1e6, 1),
        "cpu_share": round(whole.cpu / whole.seconds, 2),
        "latency_rate": round(result.latency_rate),
        "latency_ms": {name: round(value, 2) for name, value in percentiles(result.latencies).items()},
        "limits": {part: None if rate is None else round(rate) for part, rate in limits.items()},
        "limited_by": limited_by(limits),
    }


def limited_by(limits: dict[str, float | None]) -> str:
    """Return the part that is slowest when it runs alone."""
    return min((part for part in limits if limits[part] is not None), key=lambda part: limits[part] or 0.0)


def lines(fields: dict[str, Any]) -> list[tuple[str, str]]:
    """Return label and text of each printed line; fields: from `as_json`."""
    receiver = f"transport {fields['transport']}" if fields["transport"] else "a handler that does nothing"
    latency, limits = fields["latency_ms"], fields["limits"]
    alone = [f"{part} {rate:,}/s" for part, rate in limits.items() if rate is not None]
    return [
        ("path", f"{fields['store']} to {receiver}"),
        ("rate", f"{fields['rate']:,} events/s (a backlog of {fields['events']:,})"),
        ("relay CPU", f"{fields['cpu_us_per_event']} µs per event, {fields['cpu_share']:.0%} of a core"),
        (
            "latency",
            f"p50 {latency['p50']} ms, p95 {latency['p95']} ms, p99 {latency['p99']} ms, max {latency['max']} ms",
        ),
        ("", f"from record to confirm, at {fields['latency_rate']} events/s"),
        ("alone", ", ".join(alone)),
        ("limit", ADVICE[fields["limited_by"]]),
    ]
