"""Measures the store alone, the whole path, the transport alone, then the latency of single events."""

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
from pillarbox.core.errors import CommandError
from pillarbox.core.event import Event
from pillarbox.ops.bench.target import BenchmarkTarget, Broker
from pillarbox.ops.bench.timed_transport import TimedTransport
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
MAX_EVENTS = 100_000
"""Events of a backlog, and messages that the transport sends alone, at most: it limits the load on the servers."""
RATE = 200.0
"""Single events per second, or half the rate of the relay if that is lower."""
WARM_UP = 10
"""Single events that are not measured: the first events of a connection take longer."""
PHASES = 4
ARRIVAL_TIMEOUT = 30.0
"""Seconds within which the last single event must arrive."""
WRITER = "pillarbox.ops.bench.writer_process"

OnPhase = Callable[[int], None]
"""Called after each phase with the number of its events."""


class Drained(NamedTuple):
    """A drained backlog, from the start of the relay to the last settlement."""

    events: int
    seconds: float
    cpu: float
    """Seconds of CPU time of the relay's process."""

    @property
    def rate(self) -> float:
        return self.events / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """The result of a benchmark. Rates are events per second, latencies milliseconds."""

    whole: Drained
    store_alone: Drained
    transport_alone: float | None
    """None: events went to a handler that does nothing."""
    latency_rate: float
    latencies: list[float]


class Benchmark:
    """Runs one benchmark, which takes about `seconds`."""

    def __init__(self, target: BenchmarkTarget, seconds: float, on_phase: OnPhase) -> None:
        self._target, self._slice, self._on_phase = target, seconds / PHASES, on_phase

    async def run(self) -> BenchmarkResult:
        """Measure. Raises CommandError if the set-up fails or events do not arrive."""
        async with AsyncExitStack() as opened:
            store = await opened.enter_async_context(self._target.open_store())
            broker = await opened.enter_async_context(self._target.open_broker()) if self._target.transport else None
            sink = Sink()
            store_alone = await self._drain(store, sink)
            self._on_phase(store_alone.events)
            whole = store_alone if broker is None else await self._drain(store, broker)
            self._on_phase(whole.events)
            transport_alone = None if broker is None else await self._send_alone(broker.transport)
            self._on_phase(0)
            rate = min(RATE, whole.rate / 2)
            confirmed = sink.handled if broker is None else broker.transport.confirmed
            latencies = await self._single(store, broker or sink, confirmed, rate)
            return BenchmarkResult(
                whole=whole,
                store_alone=store_alone,
                transport_alone=transport_alone,
                latency_rate=rate,
                latencies=latencies,
            )

    async def _drain(self, store: AdminStore, receiver: Broker | Sink) -> Drained:
        """Write a backlog for half of the time, then drain it."""
        events = await self._fill()
        relay = self._relay(store, receiver)
        wall, cpu = time.perf_counter(), time.process_time()
        left = await relay.run_until_empty()
        drained = Drained(events, time.perf_counter() - wall, time.process_time() - cpu)
        if left:
            raise CommandError(
                f"{left} of {events} events could not be sent; run `pillarbox doctor` to check the transport"
            )
        return drained

    async def _fill(self) -> int:
        events, until = 0, time.monotonic() + self._slice / 2
        async with aclosing(Recorder(self._target.settings)) as recorder:
            while events < MAX_EVENTS and (events == 0 or time.monotonic() < until):
                await recorder.record([event(events + number) for number in range(BATCH)])
                events += BATCH
        return events

    async def _send_alone(self, transport: TimedTransport) -> float:
        """Return the messages per second that the transport sends from memory."""
        sent, began = 0, time.monotonic()

        async def send() -> None:
            nonlocal sent
            while sent == 0 or (sent < MAX_EVENTS and time.monotonic() - began < self._slice):
                results = await transport.send(transport.largest_batch)
                sent += results.count(None)
                if any(results):
                    error = next(one for one in results if one is not None)
                    raise CommandError(f"the broker rejected messages: {error}")

        await asyncio.gather(*(send() for _ in range(transport.pace.concurrency)))
        return sent / (time.monotonic() - began)

    async def _single(
        self, store: AdminStore, receiver: Broker | Sink, confirmed: dict[str, float], rate: float
    ) -> list[float]:
        """Return the milliseconds from the call of `record`, in another process, to the confirm."""
        confirmed.clear()
        async with self._relay(store, receiver), self._writer() as writer:
            events = max(2 * WARM_UP, int(rate * self._slice))
            recorded: dict[str, float] = await writer(rate, events)
            until = time.monotonic() + ARRIVAL_TIMEOUT
            while not recorded.keys() <= confirmed.keys():
                if time.monotonic() > until:
                    missing = len(recorded.keys() - confirmed.keys())
                    raise CommandError(f"{missing} of {events} events did not arrive within {ARRIVAL_TIMEOUT:g} s")
                await asyncio.sleep(0.01)
        return [(confirmed[event_id] - at) * 1000 for event_id, at in recorded.items()]

    def _relay(self, store: AdminStore, receiver: Broker | Sink) -> Relay:
        routing: dict[str, Any] = {}
        if isinstance(receiver, Broker):
            routing = {"destinations": {"bench": Destination(receiver.address)}, "routes": [Route(to=["bench"])]}
        return Relay(
            store=store,
            transports={"bench": receiver.transport},
            config=self._target.settings.relay.config,
            name="bench",
            **routing,
        )

    @asynccontextmanager
    async def _writer(self) -> AsyncIterator[Any]:
        """Start a process that records single events, and end it with the block."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", WRITER),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            limit=1 << 26,
            start_new_session=True,
        )

        async def write(rate: float, events: int) -> Any:
            # On standard input, because the process list shows the command line, and the URL may have a password.
            job = {"variables": dict(self._target.variables), "rate": rate, "events": events}
            out, _ = await process.communicate(json.dumps(job).encode())
            if process.returncode != 0:
                raise CommandError(f"the recording process ended with {process.returncode}")
            return json.loads(out)

        try:
            yield write
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


class Sink:
    """A handler that only records the time."""

    def __init__(self) -> None:
        self.handled: dict[str, float] = {}
        self.transport = Handlers()

        @self.transport.on(EVENT_TYPE, name="bench")
        async def handle(event: Any, _context: Any) -> None:
            self.handled[event.event_id] = time.monotonic()


def event(number: int) -> Event:
    return Event(EVENT_TYPE, b"x" * SIZE, content_type="application/octet-stream", key=f"BENCH:{number % KEYS}")


def percentiles(values: list[float]) -> dict[str, float]:
    """Return p50, p95, p99 and max, in the unit of the values."""
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(values)}
