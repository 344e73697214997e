"""Settlement: decisions gather while a write is under way, and the next write takes them together.

A message stays in flight until its decision is committed, so that no fetch brings it a second time. While the store is
unavailable the decisions wait: between a confirm and its settlement they are the only thing that must not be lost.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from pillarbox import failpoints
from pillarbox.core.errors import RowsRefusedError, StoreUnavailableError
from pillarbox.core.observations import BatchSettled, LanesLost, StoreFailed
from pillarbox.core.outcome import DELIVERED, Dead, Decision, Outcome, Resolved, Retry
from pillarbox.core.retry import Backoff

if TYPE_CHECKING:
    from pillarbox.relay.in_flight import Item
    from pillarbox.relay.relay import RelayContext

GATHER = 0.02
"""Seconds between two writes while few deliveries wait: a write of one costs almost as much as a write of fifty."""
GATHER_PER_DECISION = 0.0008
"""The same per decision that is enough for a write: a small window fills soon, and then fetches wait for the write."""

_decision: Callable[[Iterable[Any]], Decision] = partial(cast(Any, tuple).__new__, Decision)
"""Of its fields, in half the time of `Decision(…)`."""


class _Entry:
    __slots__ = ("error", "followers", "item", "outcome", "refused", "since")

    def __init__(
        self, item: Item, outcome: Outcome | None, since: float, error: str = "", followers: Sequence[Item] = ()
    ) -> None:
        """outcome: None: a deferral to be counted. since: when it was decided, on the monotonic clock."""
        self.item = item
        self.outcome = outcome
        self.since = since
        self.error = error
        self.followers = followers
        self.refused = False
        """The database refused it at the last write."""


class Settlement:
    """Decisions on messages, until they are written."""

    def __init__(self, context: RelayContext) -> None:
        config = context.config
        self._context = context
        self._in_flight = context.in_flight
        self._barrier = context.barrier
        self._clock = context.clock
        self._batch = 2 * config.batch_size
        self._enough = config.min_batch
        """How many decisions are written without waiting for more."""
        self._gather_for = min(GATHER, GATHER_PER_DECISION * self._enough)
        self._enough_bytes = config.max_bytes // 8
        """Bytes in flight above which decisions are written at once."""
        self._pending: list[_Entry] = []
        self._has_pending = asyncio.Event()
        self._hurry = asyncio.Event()
        """Set once what waits is worth a write, or another message waits for it."""
        self._wrote_at = -math.inf
        self._outage: Backoff | None = None
        """The pauses while the store is unavailable."""
        self._refusals = Backoff(context.rng, first=0.05)
        self._has_refused = False
        """Whether refused decisions are among those that wait."""
        self._refused_until = 0.0
        """When to write refused decisions again, on the monotonic clock."""
        self._writing: list[_Entry] = []
        self.ended = False
        self.writes = 0
        """How often decisions were written so far."""

    def add(self, item: Item, outcome: Outcome, followers: list[Item] | None = None) -> None:
        """Write this decision; `followers` are released with it."""
        if _stops(outcome):
            self._barrier.stop(item.queue)
        self._pending.append(_Entry(item, outcome, self._clock.monotonic(), followers=followers or ()))
        self._added(hurry=outcome is not DELIVERED or _is_awaited(item))

    def delivered(self, items: Iterable[Item]) -> None:
        """The transport accepted these."""
        now = self._clock.monotonic()
        accepted = [_Entry(item, DELIVERED, now) for item in items]
        self._pending += accepted
        self._added(hurry=any(_is_awaited(entry.item) for entry in accepted))

    def defer(self, item: Item, error: str, followers: list[Item]) -> None:
        """Write a deferral because of an outage; the message is released."""
        self._barrier.stop(item.queue)
        self._pending.append(_Entry(item, None, self._clock.monotonic(), error, followers))
        self._added(hurry=True)

    def _added(self, *, hurry: bool = False) -> None:
        self._has_pending.set()
        if hurry or len(self._pending) >= self._enough or self._in_flight.bytes >= self._enough_bytes:
            self._hurry.set()

    @property
    def idle(self) -> bool:
        return not self._pending and not self._writing

    @property
    def oldest(self) -> float | None:
        """When the decision was made that waits longest to be written; None if none waits."""
        return min((entry.since for entry in (*self._writing, *self._pending)), default=None)

    def abandon(self) -> None:
        """The relay ends: what could not be written is decided again by the next owner of its lane."""
        self._pending.clear()
        self._barrier.clear()

    async def run(self) -> None:
        """Write whatever is there, again and again."""
        self.ended = False
        try:
            while True:
                await self._has_pending.wait()
                await self.flush()
        finally:
            self.ended = True

    async def flush(self) -> None:
        """Write until nothing is left; waits while the store is unavailable."""
        while self._pending:
            await self._gather()
            self._writing = taken = self._next()
            if not self._pending:
                self._hurry.clear()
            if not taken:
                await self._wait_for_refused()
                continue
            try:
                await self._write(taken)
                self._outage = None
                if any(entry.refused for entry in taken):
                    self._refusals.reset()
            except StoreUnavailableError as error:
                if isinstance(error, RowsRefusedError) and not error.positions.isdisjoint(_positions(taken)):
                    self._refuse(taken, error)
                else:
                    self._pending = taken + self._pending
                    self._has_refused = True  # assume so until a write succeeds
                    await self._wait_for_store(error)
            finally:
                self._writing = []
        self._has_pending.clear()

    async def _gather(self) -> None:
        """Wait for more deliveries where the last write has only just begun: nothing waits for theirs."""
        pause = self._wrote_at + self._gather_for - self._clock.monotonic()
        if pause > 0 and not self._hurry.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
        self._wrote_at = self._clock.monotonic()

    def _next(self) -> list[_Entry]:
        """Take what to write together; nothing if only refused decisions are there, and their pause is not over.

        Refused decisions go apart from all others, which would be written again and again with them, and after a pause
        before them: under load there are always others.
        """
        if not self._has_refused:
            taken, self._pending = self._pending[: self._batch], self._pending[self._batch :]
            return taken
        due = self._clock.monotonic() >= self._refused_until
        refused = [entry for entry in self._pending if entry.refused] if due else []
        taken = (refused or [entry for entry in self._pending if not entry.refused])[: self._batch]
        chosen = set(taken)
        self._pending = [entry for entry in self._pending if entry not in chosen]
        self._has_refused = any(entry.refused for entry in self._pending)
        return taken

    def _refuse(self, taken: list[_Entry], error: RowsRefusedError) -> None:
        """These decisions wait until the database accepts them: others do not wait, and nothing is sent twice."""
        for entry in taken:
            entry.refused = entry.item.position in error.positions
        self._has_refused = True
        # Behind the others that are refused: there may be more of them than are written together.
        self._pending = sorted(self._pending + taken, key=attrgetter("refused"))
        pause = self._refusals.next()
        self._refused_until = self._clock.monotonic() + pause
        self._context.announce(StoreFailed(relay=self._context.relay, error=str(error), delay=pause))

    async def _wait_for_refused(self) -> None:
        """Wait until refused decisions may be written again, or another one is made."""
        self._has_pending.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._refused_until - self._clock.monotonic()):
                await self._has_pending.wait()

    async def _wait_for_store(self, error: StoreUnavailableError) -> None:
        """Wait before the next write."""
        self._outage = self._outage or Backoff(self._context.rng, first=0.05)
        pause = self._outage.next()
        self._context.announce(StoreFailed(relay=self._context.relay, error=str(error), delay=pause))
        await self._clock.sleep(pause)

    async def _write(self, taken: list[_Entry]) -> None:
        # A decision about an item from before its lane was lost is void, also if the lane was taken back.
        ours = [entry for entry in taken if self._in_flight.holds(entry.item)]
        epochs = self._context.ownership.epochs
        began = self._clock.monotonic()
        decisions = [
            _decision((entry.item.message, entry.outcome, entry.item.destination, entry.item.took))
            for entry in ours
            if entry.outcome is not None
        ]
        lost: set[int] = set()
        duplicates = 0
        if decisions:
            if failpoints.armed:
                failpoints.hit("before-settle")
            settled = await self._context.store.writes.settle(epochs, decisions)
            if failpoints.armed:
                failpoints.hit("after-settle")
            lost |= settled.lost
            duplicates = settled.duplicates
        deferrals: dict[tuple[str, bool], list[Resolved]] = {}
        for entry in ours:
            if entry.outcome is None:
                of = deferrals.setdefault((entry.error, entry.item.counted_before_send), [])
                of.append(Resolved(entry.item.message, entry.item.destination))
        for (error, before_send), messages in deferrals.items():
            counted = await self._context.store.writes.count_attempt(
                epochs, messages, error=error, counted_before_send=before_send
            )
            lost |= counted.lost
        self._written(taken, [entry for entry in ours if entry.item.message.lane not in lost] if lost else ours)
        if dropped := self._context.ownership.lose(lost, epochs):
            self._context.announce(LanesLost(relay=self._context.relay, lanes=tuple(dropped)))
        if decisions:
            written = [one for one in decisions if one.message.lane not in lost] if lost else decisions
            self._context.statistics.count(written, self._clock.now())
            if self._context.announce.observers:
                took = self._clock.monotonic() - began
                self._context.announce(_summary(self._context.relay, decisions, duplicates, took))

    def _written(self, taken: list[_Entry], valid: list[_Entry]) -> None:
        stopped = [entry for entry in taken if _stops(entry.outcome)]
        for entry in stopped:
            self._barrier.written(entry.item.queue)
        self._in_flight.forget([entry.item for entry in taken])
        for entry in stopped:
            self._in_flight.forget(entry.followers)
        context, schedule = self._context, self._context.schedule
        if not context.crash_guard.inactive:
            context.crash_guard.settled([entry.item.message for entry in valid])
        others = [entry for entry in valid if entry.item.waited or entry.outcome is not DELIVERED]
        waited = [entry for entry in others if entry.item.waited]
        if waited:
            # The next message of their queues may come; a deferred one (None) comes again itself.
            schedule.continue_queues(
                queue
                for entry in waited
                if entry.outcome is None or not _stops(entry.outcome)
                if (queue := entry.item.key_queue) is not None
            )
            # A scheduled message that is due may have waited for them.
            schedule.due_within(0)
        for delay in {entry.outcome.delay for entry in others if isinstance(entry.outcome, Retry)}:
            schedule.retry_within(delay)
        self.writes += 1
        if not others and schedule.exhausted:
            context.wakeups.notice()  # only the number in flight changed
        else:
            context.wakeups.fetch()
        context.wakeups.send()


def _positions(entries: list[_Entry]) -> list[tuple[int, str]]:
    return [entry.item.position for entry in entries]


def _is_awaited(item: Item) -> bool:
    """Whether others wait until it is settled: later ones of its key, or the next one in quarantine."""
    return item.waited or item.counted_before_send


def _stops(outcome: Outcome | None) -> bool:
    """Whether later messages of its key have to wait; a deferred one (None) comes again first."""
    if outcome is DELIVERED:  # as most are
        return False
    return outcome is None or isinstance(outcome, Retry) or (isinstance(outcome, Dead) and outcome.block)


def _summary(relay: str, decisions: list[Decision], duplicates: int, took: float) -> BatchSettled:
    outcomes = [decision.outcome for decision in decisions]
    delivered = outcomes.count(DELIVERED)
    dead = sum(isinstance(outcome, Dead) for outcome in outcomes) if delivered < len(outcomes) else 0
    return BatchSettled(
        relay=relay,
        delivered=delivered,
        retried=len(decisions) - delivered - dead,
        dead=dead,
        duplicates=duplicates,
        seconds=took,
    )
