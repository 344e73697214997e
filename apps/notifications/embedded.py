"""Layers 1 and 2 in one process without a broker: the listeners are handlers of the relay.

Invariant: each audience has a route to its own listener and to no other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from sqlalchemy import Engine

from apps.notifications.database import open_store
from apps.notifications.listeners import LISTENERS
from apps.notifications.orchestration.orchestrator import Clock, utc_now
from pillarbox import ExponentialBackoff, Handlers, Relay, Route
from pillarbox.telemetry.logs import RelayLog
from pillarbox.telemetry.opentelemetry import RelayTracing

RETRY = ExponentialBackoff(base="1s", multiplier=5, max_delay="1h", jitter="none", max_attempts=7)


@asynccontextmanager
async def embedded_relay(url: str, engine: Engine, *, clock: Clock = utc_now) -> AsyncIterator[Relay]:
    """Create a relay that calls the four listeners. Run it with `await relay.run()` or `async with relay:`.

    engine: connects to the same database; the caller disposes of it.
    """
    handlers = Handlers()
    for listener in LISTENERS.values():
        handlers.add(listener(engine, clock=clock).consumer)
    async with aclosing(open_store(url, ledger=True)) as store:
        yield Relay(
            store=store,
            transports={"handlers": handlers},
            destinations={audience.queue: handlers.to(audience.queue) for audience in LISTENERS},
            routes=[Route(aggregate_type=audience, to=[audience.queue]) for audience in LISTENERS],
            retry=RETRY,
            observers=[RelayLog(), RelayTracing()],
        )
