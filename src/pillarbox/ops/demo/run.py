"""Runs a demo: write orders, kill the relay, stop writing, drain, verify."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import CommandError, ConfigurationError
from pillarbox.core.text import plural
from pillarbox.ops.child_process import ChildProcess
from pillarbox.ops.demo.console_server import serve_console
from pillarbox.ops.demo.database import OrderDatabase, order_database
from pillarbox.ops.demo.environment import CONFIG, DemoEnvironment
from pillarbox.ops.demo.ledger import LedgerReader
from pillarbox.ops.demo.order_service import OrderService
from pillarbox.ops.demo.sampling import Sampler, Snapshot
from pillarbox.ops.demo.verification import Verification, verify

ShowSnapshot = Callable[[Snapshot], None]

RELAY = "pillarbox.ops.demo.relay_process"
CONSUMER = "pillarbox.ops.demo.consumer_process"

SAMPLE_INTERVAL = 0.2
"""Seconds between two snapshots."""
KILL_INTERVAL = 10.0
"""Seconds between two kills in a run without a planned end."""
STALL_TIMEOUT = 60.0
"""Seconds without a new ledger entry after which the demo fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """Duration and rate; without `seconds` and `events` the demo runs until `stop`. Raises ConfigurationError."""

    seconds: float | None = None
    events: int | None = None
    rate: float = 200.0
    """Events per second."""
    kill: bool = False
    """Kill the relay half-way and start another."""
    keep: bool = False
    """Keep the data after the run."""
    console: bool = False
    """Serve the web console during the run."""

    def __post_init__(self) -> None:
        for name in ("seconds", "events", "rate"):
            if (value := getattr(self, name)) is not None and value <= 0:
                raise ConfigurationError(f"--{name} is {value:g}: it must be greater than zero")

    def progress(self, *, seconds: float, events: int) -> float | None:
        """Return the completed part of the run, 0 to 1; None without a planned end."""
        parts = [
            current / planned
            for current, planned in ((seconds, self.seconds), (events, self.events))
            if planned is not None
        ]
        return min(1.0, max(parts)) if parts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The result of a demo."""

    verification: Verification
    seconds: float
    rolled_back: int
    kills: int
    epoch: int
    """Highest epoch of a lane: 1 + the number of takeovers."""


class DemoRun:
    """One run of the demo."""

    def __init__(self, environment: DemoEnvironment, options: DemoOptions, show: ShowSnapshot) -> None:
        self._environment = environment
        self._options = options
        self._show = show
        self._stopping = asyncio.Event()
        self._children: list[ChildProcess] = []
        self._next_sample = 0.0

    def stop(self) -> None:
        """Stop writing; `run` still drains the outbox and verifies."""
        self._stopping.set()

    async def run(self) -> DemoResult:
        """Run in an empty folder until the result is known. Raises PillarboxError if the demo cannot continue."""
        async with AsyncExitStack() as stack:
            await self._environment.check_transport()
            store = self._environment.open_store()
            stack.push_async_callback(store.aclose)
            await store.schema.apply()
            self._database = await self._open_database(stack)
            self._service = OrderService(self._database, random.Random())  # noqa: S311 - not for secrets
            stack.callback(self._close_children)
            if self._environment.transport:
                self._start(CONSUMER)
            self._start(RELAY)
            await self._wait_for_relay(store)
            console = await stack.enter_async_context(serve_console(store)) if self._options.console else ""
            self._sampler = Sampler(self._environment, store, self._service, console=console)
            await self._write()
            await self._drain()
            # The relay before the consumer, which empties the queue and then exits.
            for child in reversed(self._children):
                await child.stop(within=STALL_TIMEOUT)
            overview = await store.admin.inspection.overview()
            epoch = max(lane.epoch for lane in overview.lanes)
            return DemoResult(
                verification=await self._verify(dead_letters=overview.dead, epoch=epoch),
                seconds=self._sampler.elapsed,
                rolled_back=self._service.rolled_back,
                kills=self._sampler.kills,
                epoch=epoch,
            )

    async def _open_database(self, stack: AsyncExitStack) -> OrderDatabase:
        database = order_database(self._environment)
        stack.push_async_callback(database.aclose)
        await database.open()
        if not self._options.keep:
            stack.push_async_callback(database.remove)
        return database

    def _start(self, module: str) -> None:
        log = self._environment.folder / f"{module.rpartition('.')[2]}.log"
        self._children.append(ChildProcess(module, self._environment.dump(), log=log))

    def _close_children(self) -> None:
        for child in self._children:
            child.close()

    async def _wait_for_relay(self, store: AdminStore) -> None:
        """Wait until the relay owns lanes. Raises CommandError if it ends before."""
        while all(lane.owner is None for lane in (await store.admin.inspection.overview()).lanes):
            self._check_children()
            await asyncio.sleep(SAMPLE_INTERVAL / 10)

    def _check_children(self) -> None:
        for child in self._children:
            child.check()

    async def _write(self) -> None:
        due = 0.0
        while not self._stopping.is_set() and not self._finished():
            if self._sampler.elapsed >= due:
                written = await self._service.write_transaction()
                due = max(due, self._sampler.elapsed - 1) + written / self._options.rate
                if self._kill_due():
                    self._kill()
            if self._sampler.elapsed >= self._next_sample:
                await self._sample()
            await self._wait(min(due, self._next_sample) - self._sampler.elapsed)

    def _finished(self) -> bool:
        """Return whether the planned end is reached and, with `kill`, the relay was killed."""
        return self._progress() == 1.0 and (self._sampler.kills > 0 or not self._options.kill)

    def _progress(self) -> float | None:
        return self._options.progress(seconds=self._sampler.elapsed, events=self._service.committed)

    def _kill_due(self) -> bool:
        if not self._options.kill or not self._sampler.entries:
            return False
        if (progress := self._progress()) is None:
            return self._sampler.elapsed > KILL_INTERVAL * (self._sampler.kills + 1)
        return progress >= 0.5 and self._sampler.kills == 0

    def _kill(self) -> None:
        """Kill the relay right after a commit, when it is likely to have messages in flight, and start another."""
        relay = self._children.pop()
        relay.kill()
        self._sampler.kills += 1
        self._sampler.add_activity(f"relay (pid {relay.pid}) killed with SIGKILL")
        self._start(RELAY)
        pid = self._children[-1].pid
        self._sampler.add_activity(f"relay (pid {pid}) started; it acquires the lanes when the lease expires")

    async def _wait(self, seconds: float) -> None:
        if seconds > 0:
            try:
                await asyncio.wait_for(self._stopping.wait(), seconds)
            except TimeoutError:
                return

    async def _sample(self) -> Snapshot:
        self._next_sample = self._sampler.elapsed + SAMPLE_INTERVAL
        self._check_children()
        snapshot = await self._sampler.sample(self._progress())
        self._show(snapshot)
        return snapshot

    async def _drain(self) -> None:
        self._sampler.phase = "draining"
        entries, since = self._sampler.entries, self._sampler.elapsed
        while (pending := (await self._sample()).overview.backlog) > 0:
            if self._sampler.entries > entries:
                entries, since = self._sampler.entries, self._sampler.elapsed
            elif self._sampler.elapsed - since > STALL_TIMEOUT:
                backlog = plural(pending, "event is pending", "events are pending")
                raise CommandError(
                    f"{backlog}, but none was delivered for {STALL_TIMEOUT:g} s; run with --keep DIR and read the logs"
                )
            await asyncio.sleep(SAMPLE_INTERVAL)

    async def _verify(self, *, dead_letters: int, epoch: int) -> Verification:
        return verify(
            await self._database.read(),
            LedgerReader(self._environment.ledger).read_new(),
            receivers=self._environment.receivers,
            dead_letters=dead_letters,
            max_duplicates=(epoch - 1) * CONFIG.max_in_flight,
        )
