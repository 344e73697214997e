"""The course of a demo: write, kill, go on writing, stop, let everything drain, and judge."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from pillarbox.admin.admin import AdminStore
from pillarbox.core.errors import ConfigurationError, PillarboxError
from pillarbox.core.text import plural
from pillarbox.ops.demo.books import Books, books_of
from pillarbox.ops.demo.leash import Child
from pillarbox.ops.demo.ledger import LedgerReader
from pillarbox.ops.demo.scene import CONFIG, Scene
from pillarbox.ops.demo.shop import Shop
from pillarbox.ops.demo.verdict import Verdict, judge
from pillarbox.ops.demo.watching import Figures, Watch
from pillarbox.ops.demo.window import window

Show = Callable[[Figures], None]

RELAY = "pillarbox.ops.demo.relay_process"
CONSUMER = "pillarbox.ops.demo.consumer_process"

LOOK_EVERY = 0.2
KILL_EVERY = 10.0
"""Seconds between two kills in a run without a planned end."""
STUCK = 60.0
"""Seconds without a new line in the ledger after which nobody waits for the rest."""


class DemoStuck(PillarboxError):
    """Events wait, and nothing happens any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long to write, and how fast; without `seconds` and `events` until told to stop. Raises ConfigurationError."""

    seconds: float | None = None
    events: int | None = None
    rate: float = 200.0
    """Events a second."""
    kill: bool = False
    """Kill the relay in the middle, and start another."""
    keep: bool = False
    """Leave everything where it is, for people to look at."""
    console: bool = False
    """Serve the web console meanwhile."""

    def __post_init__(self) -> None:
        for name in ("seconds", "events", "rate"):
            if (value := getattr(self, name)) is not None and value <= 0:
                raise ConfigurationError(f"--{name} is {value:g}: it must be above zero")

    def done(self, *, seconds: float, events: int) -> float | None:
        """The part that is over, 0 to 1; None without a planned end."""
        parts = [
            had / planned for had, planned in ((seconds, self.seconds), (events, self.events)) if planned is not None
        ]
        return min(1.0, max(parts)) if parts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a demo ends with."""

    verdict: Verdict
    seconds: float
    rolled_back: int
    kills: int
    epoch: int
    """How often lanes changed hands."""


class Run:
    """One demo. `stop` ends the writing; what was committed is still delivered and judged."""

    def __init__(self, scene: Scene, plan: Plan, show: Show) -> None:
        self._scene = scene
        self._plan = plan
        self._show = show
        self._stopping = asyncio.Event()
        self._children: list[Child] = []
        self._next_look = 0.0

    def stop(self) -> None:
        self._stopping.set()

    async def play(self) -> Outcome:
        """From an empty folder to the verdict. Raises PillarboxError if the demo itself could not go on."""
        async with AsyncExitStack() as stack:
            await self._scene.check_transport()
            store = self._scene.open_store()
            stack.push_async_callback(store.aclose)
            await store.schema.apply()
            self._books = await self._open_books(stack)
            self._shop = Shop(self._books, random.Random())  # noqa: S311 - customers, not secrets
            stack.callback(self._end_children)
            if self._scene.transport:
                self._start(CONSUMER)
            self._start(RELAY)
            await self._wait_for_relay(store)
            self._watch = Watch(self._scene, store, self._shop)
            if self._plan.console:
                self._watch.window = await stack.enter_async_context(window(store))
            await self._write()
            await self._drain()
            # The relay first: the consumer empties the queue and goes.
            for child in reversed(self._children):
                await child.release(within=STUCK)
            seen = await store.admin.inspection.overview()
            epoch = max(lane.epoch for lane in seen.lanes)
            return Outcome(
                verdict=await self._judge(dead_letters=seen.dead, epoch=epoch),
                seconds=self._watch.elapsed,
                rolled_back=self._shop.rolled_back,
                kills=self._watch.kills,
                epoch=epoch,
            )

    async def _open_books(self, stack: AsyncExitStack) -> Books:
        books = books_of(self._scene)
        stack.push_async_callback(books.aclose)
        await books.open()
        if not self._plan.keep:
            stack.push_async_callback(books.remove)
        return books

    def _start(self, module: str) -> None:
        log = self._scene.folder / f"{module.rpartition('.')[2]}.log"
        self._children.append(Child(module, self._scene, log=log))

    def _end_children(self) -> None:
        for child in self._children:
            child.end()

    async def _wait_for_relay(self, store: AdminStore) -> None:
        """Until it owns lanes; if it never does, something else is wrong and it ends."""
        while all(lane.owner is None for lane in (await store.admin.inspection.overview()).lanes):
            self._check_children()
            await asyncio.sleep(LOOK_EVERY / 10)

    def _check_children(self) -> None:
        for child in self._children:
            child.check()

    # -- writing --------------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        due = 0.0
        while not self._stopping.is_set() and not self._over():
            if self._watch.elapsed >= due:
                due = max(due, self._watch.elapsed - 1) + await self._shop.trade() / self._plan.rate
                if self._kill_due():
                    self._kill()
            if self._watch.elapsed >= self._next_look:
                await self._look()
            await self._wait(min(due, self._next_look) - self._watch.elapsed)

    def _over(self) -> bool:
        """A relay that is to be killed is killed first, however few events were asked for."""
        return self._done() == 1.0 and (self._watch.kills > 0 or not self._plan.kill)

    def _done(self) -> float | None:
        return self._plan.done(seconds=self._watch.elapsed, events=self._shop.committed)

    def _kill_due(self) -> bool:
        if not self._plan.kill or not self._watch.lines:
            return False
        if (done := self._done()) is None:
            return self._watch.elapsed > KILL_EVERY * (self._watch.kills + 1)
        return done >= 0.5 and self._watch.kills == 0

    def _kill(self) -> None:
        """Right after a commit, so that a relay at work has something in hand, or at least in front of it."""
        relay = self._children.pop()
        relay.kill()
        self._watch.kills += 1
        self._watch.happened(f"relay (pid {relay.pid}) killed with SIGKILL")
        self._start(RELAY)
        self._watch.happened(f"relay (pid {self._children[-1].pid}) started, acquires the lanes when the lease expires")

    async def _wait(self, seconds: float) -> None:
        if seconds > 0:
            try:
                await asyncio.wait_for(self._stopping.wait(), seconds)
            except TimeoutError:
                return

    async def _look(self) -> Figures:
        self._next_look = self._watch.elapsed + LOOK_EVERY
        self._check_children()
        figures = await self._watch.look(self._done())
        self._show(figures)
        return figures

    # -- the end --------------------------------------------------------------------------------------------------

    async def _drain(self) -> None:
        self._watch.phase = "draining"
        lines, since = self._watch.lines, self._watch.elapsed
        while (waiting := (await self._look()).overview.backlog) > 0:
            if self._watch.lines > lines:
                lines, since = self._watch.lines, self._watch.elapsed
            elif self._watch.elapsed - since > STUCK:
                waits = plural(waiting, "event is pending", "events are pending")
                raise DemoStuck(
                    f"{waits}, but nothing was processed for {STUCK:g} s: run with --keep DIR and read the logs"
                )
            await asyncio.sleep(LOOK_EVERY)

    async def _judge(self, *, dead_letters: int, epoch: int) -> Verdict:
        return judge(
            await self._books.read(),
            LedgerReader(self._scene.ledger).more(),
            receivers=self._scene.receivers,
            dead_letters=dead_letters,
            most_repeats=(epoch - 1) * CONFIG.max_in_flight,
        )
