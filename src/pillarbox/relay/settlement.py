"""Verdicts on their way into the store: gathered while a write is under way, written together by the next one.

A message stays in hand until its verdict is committed, so that no look brings it a second time. If the store is away
the verdicts wait: they are the only thing that must not be lost between a confirm and its settlement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from pillarbox.core import failpoints
from pillarbox.core.clock import Chance, Clock
from pillarbox.core.errors import StoreUnavailable
from pillarbox.core.message import Message, Slot
from pillarbox.core.observations import Announcer, BatchSettled, LanesLost, StoreFailed
from pillarbox.core.outcome import DELIVERED, Dead, Outcome, Resolved, Retry, Verdict
from pillarbox.core.store import Store
from pillarbox.relay.figures import Figures
from pillarbox.relay.hand import Hand, Item
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.stops import Stops

LONGEST_PAUSE = 5.0


@dataclass(slots=True, eq=False)
class _Entry:
    item: Item
    outcome: Outcome | None
    """None: a try to be noted."""
    error: str = ""
    followers: list[Item] = field(default_factory=list)


class Settlement:
    """What became of messages, until it is written."""

    def __init__(
        self,
        *,
        relay: str,
        store: Store,
        hand: Hand,
        stops: Stops,
        ownership: Ownership,
        figures: Figures,
        announce: Announcer,
        clock: Clock,
        chance: Chance,
        batch: int,
    ) -> None:
        self.relay = relay
        self._store = store
        self._hand = hand
        self._stops = stops
        self._ownership = ownership
        self._figures = figures
        self._announce = announce
        self._clock = clock
        self._chance = chance
        self._batch = batch
        self._pending: list[_Entry] = []
        self._arrived = asyncio.Event()
        self._writing = False
        self.ended = False
        """Nothing will be written any more."""
        self.on_written: Callable[[list[Slot]], None] = lambda _: None
        """Told, after each commit, the lines whose head is gone and which are to be read on."""
        self.on_passed: Callable[[Message], None] = lambda _: None
        """Told every message that was settled."""

    def add(self, item: Item, outcome: Outcome, followers: list[Item] | None = None) -> None:
        """A verdict; `followers` are let go of with it."""
        if isinstance(outcome, Retry) or (isinstance(outcome, Dead) and outcome.block):
            self._stops.stop(item.line)
        self._pending.append(_Entry(item, outcome, followers=followers or []))
        self._arrived.set()

    def note(self, item: Item, error: str, followers: list[Item]) -> None:
        """A try that an outage ended: noted, never charged; the message is let go of."""
        self._stops.stop(item.line)
        self._pending.append(_Entry(item, None, error, followers))
        self._arrived.set()

    @property
    def idle(self) -> bool:
        return not self._pending and not self._writing

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
        pause = 0.05
        while self._pending:
            taken, self._pending = self._pending[: self._batch], self._pending[self._batch :]
            self._writing = True
            try:
                await self._write(taken)
                pause = 0.05
            except StoreUnavailable as error:
                self._pending = taken + self._pending
                self._announce(StoreFailed(relay=self.relay, error=str(error), delay=pause))
                await self._clock.sleep(pause * (0.5 + self._chance.random() / 2))
                pause = min(LONGEST_PAUSE, pause * 2)
            finally:
                self._writing = False
        self._arrived.clear()

    async def _write(self, taken: list[_Entry]) -> None:
        ours = [entry for entry in taken if self._ownership.owns(entry.item.message.lane)]
        epochs = self._ownership.epochs
        began = self._clock.monotonic()
        verdicts = [
            Verdict(entry.item.message, entry.outcome, entry.item.destination, entry.item.took)
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
        self._written(taken, lost)
        if verdicts:
            self._figures.count((one for one in verdicts if one.message.lane not in lost), self._clock.now())
            self._announce(_summary(self.relay, verdicts, duplicates, self._clock.monotonic() - began))

    def _written(self, taken: list[_Entry], lost: set[int]) -> None:
        for entry in taken:
            if not _goes_on(entry.outcome):
                # Not for one that was delivered before: what stopped its line meanwhile is not written yet.
                self._stops.written(entry.item.line)
            self._hand.forget([entry.item, *entry.followers])
            self.on_passed(entry.item.message)
        if dropped := self._ownership.lose(lost):
            self._hand.drop_lanes(dropped)
            self._announce(LanesLost(relay=self.relay, lanes=tuple(dropped)))
        self.on_written(
            [
                slot
                for entry in taken
                if entry.item.waited and _goes_on(entry.outcome) and (slot := entry.item.slot) is not None
            ]
        )


def _goes_on(outcome: Outcome | None) -> bool:
    """Whether those behind it may come now."""
    return outcome == DELIVERED or (isinstance(outcome, Dead) and not outcome.block)


def _summary(relay: str, verdicts: list[Verdict], duplicates: int, took: float) -> BatchSettled:
    delivered = sum(1 for verdict in verdicts if verdict.outcome == DELIVERED)
    dead = sum(1 for verdict in verdicts if isinstance(verdict.outcome, Dead))
    return BatchSettled(
        relay=relay,
        delivered=delivered,
        retried=len(verdicts) - delivered - dead,
        dead=dead,
        duplicates=duplicates,
        seconds=took,
    )
