"""What listeners cost a relay: processor time for each delivered event.

    python -m benchmarks.metrics [events] [repeats]

Announces deliveries of 20 event types to 5 destinations, as a relay does, to each listener alone. The table shows the
best of the repeats, in µs per event; `nobody` is what announcing costs by itself.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Sequence

from opentelemetry.sdk.trace import TracerProvider

from pillarbox.core.observations import Announcer, EventDelivered, Observer
from pillarbox.telemetry.logs import LogListener
from pillarbox.telemetry.opentelemetry import RelayTracing
from pillarbox.telemetry.prometheus import MetricsListener
from tests.unit.relay.messages import message

TYPES, DESTINATIONS = 20, 5
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def deliveries(count: int, trace: str | None) -> list[EventDelivered]:
    return [
        EventDelivered(
            relay="r",
            message=message(event_id=str(number), event_type=f"type.{number % TYPES}", trace_id=trace),
            destination=f"destination-{number % DESTINATIONS}",
            seconds=0.004,
        )
        for number in range(count)
    ]


def cost(observers: Sequence[Observer], told: Sequence[EventDelivered]) -> float:
    """Seconds of processor per event."""
    announce = Announcer(list(observers))
    began = time.process_time()
    for one in told:
        announce(one)
    return (time.process_time() - began) / len(told)


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    logging.getLogger("pillarbox").setLevel(logging.WARNING)
    plain, traced = deliveries(events, None), deliveries(events, TRACE)
    ways: dict[str, tuple[list[Observer], list[EventDelivered]]] = {
        "nobody": ([], plain),
        "LogListener, its lines off": ([LogListener()], plain),
        "MetricsListener": ([MetricsListener()], plain),
        "RelayTracing, events without a trace": ([RelayTracing()], plain),
        "RelayTracing, events of a trace": ([RelayTracing(TracerProvider())], traced),
    }
    print(f"{events} events, best of {repeats}: µs per event")
    for name, (observers, told) in ways.items():
        print(f"{name:<40}{min(cost(observers, told) for _ in range(repeats)) * 1e6:>8.2f}")


if __name__ == "__main__":
    main()
