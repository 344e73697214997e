"""The cost of listeners: CPU time of a relay per delivered event.

    python -m benchmarks.metrics [events] [repeats]

Announces deliveries of 20 event types to 5 destinations, as a relay does, to each listener alone: in batches of 500, as
after a send to a broker, and one at a time. The table shows the best of the repeats, in µs per event; `a function` is
an observer that does nothing and takes each event separately.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence

from opentelemetry.sdk.trace import TracerProvider

from pillarbox.core.observations import Announcer, BatchDelivered, Observer
from pillarbox.telemetry.logs import RelayLog
from pillarbox.telemetry.opentelemetry import RelayTracing
from pillarbox.telemetry.prometheus import RelayMetrics
from tests.unit.relay.messages import message

TYPES, DESTINATIONS = 20, 5
SIZES = (500, 1)
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def deliveries(count: int, size: int, trace: str | None) -> list[BatchDelivered]:
    messages = [
        message(event_id=str(number), event_type=f"type.{number % TYPES}", trace_id=trace) for number in range(count)
    ]
    return [
        BatchDelivered(
            relay="r",
            destination=f"destination-{number % DESTINATIONS}",
            messages=tuple(messages[first : first + size]),
            seconds=0.004,
        )
        for number, first in enumerate(range(0, count, size))
    ]


def cost(observers: Sequence[Observer], batches: Sequence[BatchDelivered]) -> float:
    """Seconds of processor per event."""
    announce = Announcer(list(observers))
    began = time.process_time()
    for batch in batches:
        announce.delivered(batch)
    return (time.process_time() - began) / sum(len(batch.messages) for batch in batches)


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    logging.getLogger("pillarbox").setLevel(logging.WARNING)
    plain, traced = ([deliveries(events, size, trace) for size in SIZES] for trace in (None, TRACE))
    ways: dict[str, tuple[list[Observer], list[list[BatchDelivered]]]] = {
        "no listener": ([], plain),
        "a function": ([lambda _: None], plain),
        "RelayLog, its lines off": ([RelayLog()], plain),
        "RelayMetrics": ([RelayMetrics()], plain),
        "RelayTracing, events without a trace": ([RelayTracing(TracerProvider())], plain),
        "RelayTracing, events of a trace": ([RelayTracing(TracerProvider())], traced),
        "RelayTracing, events of a trace, spans off": ([RelayTracing()], traced),
    }
    print(f"{events} events, best of {repeats}: µs per event")
    print(f"{'':<44}" + "".join(f"{f'batch of {size}':>14}" for size in SIZES))
    for name, (observers, sizes) in ways.items():
        best = [min(cost(observers, batches) for _ in range(repeats)) * 1e6 for batches in sizes]
        print(f"{name:<44}" + "".join(f"{one:>14.2f}" for one in best))


if __name__ == "__main__":
    main()
