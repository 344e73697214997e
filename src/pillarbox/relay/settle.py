"""Verdicts on their way into the store: gathered while a write is under way, written together by the next one.

A message stays in hand until its verdict is committed, so that no look brings it a second time. If the store is away
the verdicts wait: they are the only thing that must not be lost between a confirm and its settlement.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pillarbox import failpoints
from pillarbox.core.clock import Chance, Clock
from pillarbox.core.errors import RowsRefusedError, StoreUnavailableError
from pillarbox.core.message import Message, Slot
from pillarbox.core.observations import Announcer, BatchSettled, LanesLost, StoreFailed
from pillarbox.core.outcome import DELIVERED, Dead, Outcome, Resolved, Retry, Verdict
from pillarbox.core.retry import Backoff
from pillarbox.core.store import Store
from pillarbox.relay.in_flight import InFlight, Item
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.retention import Figures

if TYPE_CHECKING:
    from pillarbox.relay.admission import Stops

GATHER = 0.02
"""Seconds between two writes while few deliveries wait: a write of one costs almost as much as a write of fifty."""
GATHER_PER_DECISION = 0.0008
"""The same per decision that is enough for a write: a small window fills soon, and then fetches wait for the write."""

_verdict: Callable[[Iterable[Any]], Verdict] = partial(tuple.__new__, Verdict)
"""Of its fields, in half the time of `Verdict(…)`."""


class Freed(NamedTuple):
    """What there is to fetch because of a settlement."""

    slots: list[Slot]
    """Lines whose head is gone or comes again at once: they are to be read on."""
    due: bool
    """Messages that had waited were settled: one that is due may have waited for them."""
    retries: set[float]
    """Seconds until messages come back."""
    nothing: bool
    """Every message was delivered, and none had waited: nothing but room in flight came free."""


class _Entry:
    __slots__ = ("error", "followers", "item", "outcome", "refused", "since")

    def __init__(
        self, item: Item, outcome: Outcome | None, since: float, error: str = "", followers: Sequence[Item] = ()
    ) -> None:
        """outcome: None: a try to be noted. since: when it was decided, on the monotonic clock."""
        self.item = item
        self.outcome = outcome
        self.since = since
        self.error = error
        self.followers = followers
        self.refused = False
        """The database refused it at the last write."""


class Settlement:
    """What became of messages, until it is written."""

    def __init__(
        self,
        *,
        relay: str,
        store: Store,
        in_flight: InFlight,
        stops: Stops,
        ownership: Ownership,
        figures: Figures,
        announce: Announcer,
        clock: Clock,
        chance: Chance,
        batch: int,
        enough: int = 1,
        enough_bytes: int = 0,
    ) -> None:
        """enough: how many decisions are written without waiting for more; enough_bytes: with so many bytes in flight,
        any number."""
        self.relay = relay
        self._store = store
        self._in_flight = in_flight
        self._stops = stops
        self._ownership = ownership
        self._figures = figures
        self._announce = announce
        self._clock = clock
        self._chance = chance
        self._batch = batch
        self._enough = enough
        self._gather_for = min(GATHER, GATHER_PER_DECISION * enough)
        self._enough_bytes = enough_bytes
        self._pending: list[_Entry] = []
        self._arrived = asyncio.Event()
        self._hurry = asyncio.Event()
        """Set once what waits is worth a write, or another message waits for it."""
        self._wrote_at = -math.inf
        self._refusals = Backoff(chance, first=0.05)
        self._has_refused = False
        """Whether refused decisions are among those that wait."""
        self._refused_until = 0.0
        """When to write refused decisions again, on the monotonic clock."""
        self._writing: list[_Entry] = []
        self.ended = False
        """Nothing will be written any more."""
        self.on_written: Callable[[Freed], None] = lambda _: None
        """Told after each commit what there is to fetch because of it."""
        self.on_passed: Callable[[Sequence[Message]], None] = lambda _: None
        """Told the messages that were settled."""

    def add(self, item: Item, outcome: Outcome, followers: list[Item] | None = None) -> None:
        """A verdict; `followers` are let go of with it."""
        if _stops(outcome):
            self._stops.stop(item.queue)
        self._pending.append(_Entry(item, outcome, self._clock.monotonic(), followers=followers or ()))
        self._arrive(hurry=outcome is not DELIVERED or _is_awaited(item))

    def delivered(self, items: Iterable[Item]) -> None:
        """These arrived."""
        now = self._clock.monotonic()
        arrived = [_Entry(item, DELIVERED, now) for item in items]
        self._pending += arrived
        self._arrive(hurry=any(_is_awaited(entry.item) for entry in arrived))

    def note(self, item: Item, error: str, followers: list[Item]) -> None:
        """A try that an outage ended: noted, never charged; the message is let go of."""
        self._stops.stop(item.queue)
        self._pending.append(_Entry(item, None, self._clock.monotonic(), error, followers))
        self._arrive(hurry=True)

    def _arrive(self, *, hurry: bool = False) -> None:
        self._arrived.set()
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
        self._stops.clear()

    async def run(self) -> None:
        """Write whatever is there, again and again."""
        self.ended = False
        try:
            while True:
                await self._arrived.wait()
                await self.flush()
        finally:
            self.ended = True

    async def flush(self) -> None:
        """Write until nothing is left; waits for the store if it is away."""
        backoff = Backoff(self._chance, first=0.05)
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
                backoff.reset()
                if any(entry.refused for entry in taken):
                    self._refusals.reset()
            except StoreUnavailableError as error:
                if isinstance(error, RowsRefusedError) and not error.places.isdisjoint(_places(taken)):
                    self._refuse(taken, error)
                else:
                    self._pending = taken + self._pending
                    self._has_refused = True  # for all that is known
                    await self._wait_for_store(error, backoff)
            finally:
                self._writing = []
        self._arrived.clear()

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
            entry.refused = entry.item.place in error.places
        self._has_refused = True
        # Behind the others that are refused: there may be more of them than are written together.
        self._pending = sorted(self._pending + taken, key=attrgetter("refused"))
        pause = self._refusals.next()
        self._refused_until = self._clock.monotonic() + pause
        self._announce(StoreFailed(relay=self.relay, error=str(error), delay=pause))

    async def _wait_for_refused(self) -> None:
        """Wait until refused decisions may be written again, or another one is made."""
        self._arrived.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._refused_until - self._clock.monotonic()):
                await self._arrived.wait()

    async def _wait_for_store(self, error: StoreUnavailableError, backoff: Backoff) -> None:
        """Wait before the next write."""
        pause = backoff.next()
        self._announce(StoreFailed(relay=self.relay, error=str(error), delay=pause))
        await self._clock.sleep(pause)

    async def _write(self, taken: list[_Entry]) -> None:
        # A decision about an item from before its lane was lost is void, also if the lane was taken back.
        ours = [entry for entry in taken if self._in_flight.holds(entry.item)]
        epochs = self._ownership.epochs
        began = self._clock.monotonic()
        verdicts = [
            _verdict((entry.item.message, entry.outcome, entry.item.destination, entry.item.took))
            for entry in ours
            if entry.outcome is not None
        ]
        lost: set[int] = set()
        duplicates = 0
        if verdicts:
            failpoints.hit("before-settle")
            settled = await self._store.writes.settle(epochs, verdicts)
            failpoints.hit("after-settle")
            lost |= settled.lost
            duplicates = settled.duplicates
        notes: dict[tuple[str, bool], list[Resolved]] = {}
        for entry in ours:
            if entry.outcome is None:
                of = notes.setdefault((entry.error, entry.item.noted), [])
                of.append(Resolved(entry.item.message, entry.item.destination))
        for (error, noted), messages in notes.items():
            lost |= (await self._store.writes.note(epochs, messages, error=error, noted=noted)).lost
        self._written(taken, [entry for entry in ours if entry.item.message.lane not in lost] if lost else ours)
        if dropped := self._ownership.lose(lost, epochs):
            self._announce(LanesLost(relay=self.relay, lanes=tuple(dropped)))
        if verdicts:
            written = [one for one in verdicts if one.message.lane not in lost] if lost else verdicts
            self._figures.count(written, self._clock.now())
            self._announce(_summary(self.relay, verdicts, duplicates, self._clock.monotonic() - began))

    def _written(self, taken: list[_Entry], valid: list[_Entry]) -> None:
        stopped = [entry for entry in taken if _stops(entry.outcome)]
        for entry in stopped:
            self._stops.written(entry.item.queue)
        self._in_flight.forget([entry.item for entry in taken])
        for entry in stopped:
            self._in_flight.forget(entry.followers)
        self.on_passed([entry.item.message for entry in valid])
        others = [entry for entry in valid if entry.item.waited or entry.outcome is not DELIVERED]
        waited = [entry for entry in others if entry.item.waited]
        self.on_written(
            Freed(
                slots=[
                    slot
                    for entry in waited
                    # After a noted try (None) the message itself is to be fetched again.
                    if entry.outcome is None or not _stops(entry.outcome)
                    if (slot := entry.item.slot) is not None
                ],
                due=bool(waited),
                retries={entry.outcome.delay for entry in others if isinstance(entry.outcome, Retry)},
                nothing=not others,
            )
        )


def _places(entries: list[_Entry]) -> list[tuple[int, str]]:
    return [entry.item.place for entry in entries]


def _is_awaited(item: Item) -> bool:
    """Whether others wait until it is settled: those behind it in the table, or the next one in quarantine."""
    return item.waited or item.noted


def _stops(outcome: Outcome | None) -> bool:
    """Whether those behind it have to wait; a noted try (None) comes again at once, and still goes first."""
    if outcome is DELIVERED:  # as most are
        return False
    return outcome is None or isinstance(outcome, Retry) or (isinstance(outcome, Dead) and outcome.block)


def _summary(relay: str, verdicts: list[Verdict], duplicates: int, took: float) -> BatchSettled:
    outcomes = [verdict.outcome for verdict in verdicts]
    delivered = outcomes.count(DELIVERED)
    dead = sum(isinstance(outcome, Dead) for outcome in outcomes) if delivered < len(outcomes) else 0
    return BatchSettled(
        relay=relay,
        delivered=delivered,
        retried=len(verdicts) - delivered - dead,
        dead=dead,
        duplicates=duplicates,
        seconds=took,
    )
