"""The course of a benchmark: the store alone, the whole path, the transport alone, then single events."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import PillarboxError
from pillarbox.core.event import Event
from pillarbox.core.transport import Transport
from pillarbox.ops.bench.site import Site
from pillarbox.ops.recorder import Recorder
from pillarbox.relay.relay import Relay
from pillarbox.relay.routing import Destination, Route
from pillarbox.transports.handlers import Handlers

EVENT_TYPE = "bench.event"
SIZE = 320
"""Bytes of a payload."""
KEYS = 20_000
BATCH = 500
"""Events of one transaction while the backlog is written."""
MOST = 100_000
"""Events of a backlog, and messages that the transport sends alone: the servers are the user's."""
RATE = 200.0
"""Single events a second, or half of what the relay carries."""
WARM_UP = 10
"""Single events that are not counted: the first ones of a connection take longer."""
PHASES = 4
WAIT = 30.0
"""Seconds for the last single event to arrive."""
WRITER = "pillarbox.ops.bench.writer_process"

Tell = Callable[[int], None]
"""Told after each phase how many events it carried."""


class BenchFailed(PillarboxError):
    """Events did not arrive, or a process of the benchmark ended."""


class Drained(NamedTuple):
    """One backlog, from the start of the relay to the last settlement."""

    events: int
    seconds: float
    cpu: float
    """Seconds of CPU time of the relay's process."""

    @property
    def rate(self) -> float:
        return self.events / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a benchmark found. Rates are events a second, latencies ms."""

    whole: Drained
    store_alone: Drained
    transport_alone: float | None
    """None: nothing but a handler that does nothing."""
    latency_rate: float
    latencies: list[float]


class Bench:
    """One benchmark at a site, of about so many seconds."""

    def __init__(self, site: Site, seconds: float, tell: Tell) -> None:
        self._site, self._slice, self._tell = site, seconds / PHASES, tell

    async def run(self) -> Outcome:
        """Raises BenchRefused before anything is measured, BenchFailed if events do not arrive."""
        async with AsyncExitStack() as opened:
            store = await opened.enter_async_context(self._site.open_store())
            broker = await opened.enter_async_context(self._site.open_broker()) if self._site.transport else None
            sink = Sink()
            store_alone = await self._drain(store, sink.handlers)
            self._tell(store_alone.events)
            whole = store_alone if broker is None else await self._drain(store, broker)
            self._tell(whole.events)
            transport_alone = None if broker is None else await self._send_again(broker)
            self._tell(0)
            rate = min(RATE, whole.rate / 2)
            confirmed = sink.handled if broker is None else broker.confirmed
            latencies = await self._single(store, broker or sink.handlers, confirmed, rate)
            return Outcome(
                whole=whole,
                store_alone=store_alone,
                transport_alone=transport_alone,
                latency_rate=rate,
                latencies=latencies,
            )

    async def _drain(self, store: AdminStore, transport: Transport) -> Drained:
        """Write a backlog for half of the time, then carry it."""
        events = await self._fill()
        relay = self._relay(store, transport)
        wall, cpu = time.perf_counter(), time.process_time()
        left = await relay.run_until_empty()
        drained = Drained(events, time.perf_counter() - wall, time.process_time() - cpu)
        if left:
            raise BenchFailed(f"{left} of {events} events could not be sent: `pillarbox doctor` examines the transport")
        return drained

    async def _fill(self) -> int:
        events, until = 0, time.monotonic() + self._slice / 2
        async with aclosing(Recorder(self._site.settings)) as recorder:
            while events < MOST and (events == 0 or time.monotonic() < until):
                await recorder.record([event(events + number) for number in range(BATCH)])
                events += BATCH
        return events

    async def _send_again(self, broker: Any) -> float:
        """Messages a second that the transport takes from memory."""
        sent, began = 0, time.monotonic()

        async def send() -> None:
            nonlocal sent
            while sent == 0 or (sent < MOST and time.monotonic() - began < self._slice):
                results = await broker.send(broker.kept)
                sent += results.count(None)
                if any(results):
                    raise BenchFailed(f"the broker refused messages: {next(one for one in results if one is not None)}")

        await asyncio.gather(*(send() for _ in range(broker.pace.concurrency)))
        return sent / (time.monotonic() - began)

    async def _single(
        self, store: AdminStore, transport: Transport, confirmed: dict[str, float], rate: float
    ) -> list[float]:
        """Milliseconds from the call of `record`, in another process, to the confirm."""
        confirmed.clear()
        async with self._relay(store, transport), self._writer() as writer:
            events = max(2 * WARM_UP, int(rate * self._slice))
            recorded: dict[str, float] = await writer(rate, events)
            until = time.monotonic() + WAIT
            while not recorded.keys() <= confirmed.keys():
                if time.monotonic() > until:
                    missing = len(recorded.keys() - confirmed.keys())
                    raise BenchFailed(f"{missing} of {events} events did not arrive within {WAIT:g} s")
                await asyncio.sleep(0.01)
        return [(confirmed[event_id] - at) * 1000 for event_id, at in recorded.items()]

    def _relay(self, store: AdminStore, transport: Transport) -> Relay:
        ways: dict[str, Any] = {}
        if not isinstance(transport, Handlers):
            from pillarbox.transports.rabbitmq import RabbitMQTransport

            address = RabbitMQTransport.to(exchange="", routing_key=self._site.name)
            ways = {"destinations": {"bench": Destination(address)}, "routes": [Route(to=["bench"])]}
        return Relay(
            store=store, transports={"bench": transport}, config=self._site.settings.relay.config, name="bench", **ways
        )

    @asynccontextmanager
    async def _writer(self) -> AsyncIterator[Any]:
        """A process that records single events; ended whatever happens."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", WRITER),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            limit=1 << 26,
            start_new_session=True,
        )

        async def write(rate: float, events: int) -> Any:
            # On standard input, because the process list shows what stands on a command line.
            job = {"flags": dict(self._site.flags), "rate": rate, "events": events}
            out, _ = await process.communicate(json.dumps(job).encode())
            if process.returncode != 0:
                raise BenchFailed(f"the process that records ended with {process.returncode}")
            return json.loads(out)

        try:
            yield write
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


class Sink:
    """A handler that does nothing but note the time."""

    def __init__(self) -> None:
        self.handled: dict[str, float] = {}
        self.handlers = Handlers()

        @self.handlers.on(EVENT_TYPE, name="bench")
        async def handle(event: Any, _context: Any) -> None:
            self.handled[event.event_id] = time.monotonic()


def event(number: int) -> Event:
    return Event(EVENT_TYPE, b"x" * SIZE, content_type="application/octet-stream", key=f"BENCH:{number % KEYS}")


def percentiles(values: list[float]) -> dict[str, float]:
    """By name, in the unit of the values."""
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(values)}
