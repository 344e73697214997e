"""Runs a drill: create, write under faults, drain, compare the ledgers, remove."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.drill.comparison import compare
from pillarbox.ops.drill.faults import Nemesis
from pillarbox.ops.drill.fleet import Fleet
from pillarbox.ops.drill.ledger import ARRIVALS, LineCount, has_received, read_writings
from pillarbox.ops.drill.objects import create_queue, create_tables
from pillarbox.ops.drill.options import DrillOptions
from pillarbox.ops.drill.result import DrillResult, Remainder
from pillarbox.ops.drill.sampling import DrillSampler, ShowDrill
from pillarbox.ops.drill.schedule import FaultKind, schedule
from pillarbox.ops.drill.target import DrillJob, DrillTarget, SettingsSource

WRITERS = 2
WORKERS = 2
JOIN_TIMEOUT = 60.0
"""Seconds in which the relays acquire their lanes at the start."""
DRAIN_TIMEOUT = 120.0
"""Seconds after the last fault within which every event must be delivered and handled."""
MOST_PENDING = 200
"""The writers pause while more events are pending than this, or than half a second of load."""
SETTLED = 1.0
"""Seconds without an arrival and without an effect after which the readers that have every event have nothing more to
read."""
QUIET = 10.0
"""Seconds without an arrival and without an effect after which other readers have nothing more to read."""


class DrillRun:
    """One drill. `folder` is empty; it receives ledgers and logs."""

    def __init__(
        self, source: SettingsSource, target: DrillTarget, options: DrillOptions, *, folder: Path, show: ShowDrill
    ) -> None:
        self._source = source
        self._target = target
        self._options = options
        self._folder = folder
        self._show = show
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """End the load now; `run` still drains, compares and removes."""
        self._stopping.set()

    async def run(self) -> DrillResult:
        """Run until the result is known; what was created is removed, also after an error or when cancelled.

        Raises PillarboxError if the drill cannot begin or continue.
        """
        async with AsyncExitStack() as opened:
            queue = await create_queue(self._target, opened)
            store, tables = await create_tables(self._target, opened)
            fleet = Fleet(self._job(), modules=self._options.modules)
            opened.callback(fleet.close)
            nemesis = Nemesis(
                fleet=fleet,
                store=store,
                tables=tables,
                queue=queue,
                database_hooks=self._options.database_hooks,
                broker_hooks=self._options.broker_hooks,
                spared=self._options.spared,
            )
            options = self._options
            sampler = DrillSampler(
                fleet=fleet,
                nemesis=nemesis,
                seconds=options.seconds,
                most_pending=max(MOST_PENDING, int(options.rate / 2)),
                show=self._show,
            )
            sampling = asyncio.create_task(sampler.run())
            try:
                began = await self._load(fleet, nemesis, sampler)
                sampler.phase = "draining"
                remainder = await self._drain(fleet, nemesis)
                sampler.phase = "comparing"
                return await compare(
                    self._target, self._options, self._folder, nemesis, sampler.faults, began=began, remainder=remainder
                )
            finally:
                sampling.cancel()
                with suppress(asyncio.CancelledError):
                    await sampling

    def _job(self) -> DrillJob:
        return DrillJob(
            source=self._source,
            transport=self._target.transport,
            name=self._target.name,
            folder=self._folder,
            role="",
            seed=self._options.seed,
        )

    async def _load(self, fleet: Fleet, nemesis: Nemesis, sampler: DrillSampler) -> float:
        """Write under faults for the planned time; returns when the load began."""
        options = self._options
        kinds: list[FaultKind] = [kind for kind in nemesis.kinds() if options.includes(kind)]
        if not kinds:
            raise ConfigurationError(f"--fault: none of them is possible here; use {', '.join(nemesis.kinds())}")
        if nemesis.queue is not None:
            fleet.start_reader("audit")
            for _ in range(WORKERS):
                fleet.start_reader("work")
        for _ in range(options.spared + options.relays):
            fleet.start_relay()
        await self._until_joined(fleet, nemesis)
        for number in range(WRITERS):
            fleet.start_writer(number, rate=options.rate / WRITERS, keys=max(1, options.keys // WRITERS))
        sampler.phase, began = "writing", time.monotonic()
        until = began + options.seconds
        for planned in schedule(options.seed, kinds, interval=options.interval):
            if not await self._pause(planned.pause, until=until):
                break
            while not await nemesis.recovered() and time.monotonic() < until:
                fleet.check()
                await self._pause(0.1, until=until)
            if self._stopping.is_set() or time.monotonic() >= until:
                break
            sampler.add_fault(await nemesis.execute(planned))
        fleet.resume_writers()
        await fleet.stop(fleet.writers)
        return began

    async def _until_joined(self, fleet: Fleet, nemesis: Nemesis) -> None:
        """Wait until the relays own all lanes, so that the planned time is not over before they have started."""
        until = time.monotonic() + JOIN_TIMEOUT
        while not await nemesis.recovered():
            fleet.check()
            if not await self._pause(0.05, until=until):
                return

    async def _pause(self, seconds: float, *, until: float) -> bool:
        """Wait; False: the load is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), min(seconds, until - time.monotonic()))
        return not self._stopping.is_set() and time.monotonic() < until

    async def _drain(self, fleet: Fleet, nemesis: Nemesis) -> Remainder:
        """Wait until everything is delivered and handled, and stop all processes; returns what is left."""
        until = time.monotonic() + DRAIN_TIMEOUT
        while (await nemesis.overview()).backlog and time.monotonic() < until:
            fleet.check()
            await asyncio.sleep(0.2)
        in_flight = await fleet.stop(fleet.relays)
        if nemesis.queue is not None:
            await self._until_read(fleet, nemesis, until=until)
        await fleet.stop(fleet.readers)
        return Remainder(stuck=(await nemesis.overview()).backlog, in_flight=in_flight)

    async def _until_read(self, fleet: Fleet, nemesis: Nemesis, *, until: float) -> None:
        """Wait until nothing more arrives: what relays sent twice, or should not have sent, may come last."""
        ledger = read_writings(self._folder, in_database=await nemesis.tables.committed()).ledger
        received = LineCount(self._folder / ARRIVALS)
        progress, since, wait = (-1, -1), time.monotonic(), SETTLED
        while time.monotonic() < until:
            fleet.check()
            [(effects,)] = await nemesis.tables.read("count_all_effects")
            now = (received.update(), int(effects))
            if now != progress:
                progress, since, wait = now, time.monotonic(), SETTLED
            elif time.monotonic() - since > wait:
                if wait == QUIET or (now[1] >= ledger.count and has_received(self._folder, ledger)):
                    return
                wait = QUIET
            await asyncio.sleep(0.2)
