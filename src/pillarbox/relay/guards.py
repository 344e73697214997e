"""The guards of a send, quarantine and ledger: both write before a send, the attempt of a message in quarantine and the
entry in the ledger.

A lane that was acquired repeatedly from crashed relays may contain a message that crashes its relay. The messages that
were in such a lane when it was acquired are sent one at a time, and the attempt is counted before the send. The next
owner sees such an attempt on a message that is still ready, and quarantines the message; after three of them the relay
dead-letters it. What is recorded later was not in flight during a crash: it is sent as usual.

Only a process that ended during the send counts. A relay that lost its lane, its database or its destination is alive:
it does not count its own attempt twice, it has the attempt taken back as soon as it can where another relay has the
lane, and no message is dead-lettered before the relays that may be alive had the time to do so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pillarbox.core.clock import Clock
from pillarbox.core.errors import RowsRefusedError, StoreUnavailableError
from pillarbox.core.lane import Epochs, OwnedLane, Settled
from pillarbox.core.message import Message
from pillarbox.core.observations import EventSkipped, StoreFailed
from pillarbox.core.outcome import DELIVERED, Dead, Resolved
from pillarbox.core.store import Ledger, PriorSend

if TYPE_CHECKING:
    from pillarbox.relay.decide import Decider
    from pillarbox.relay.in_flight import Item
    from pillarbox.relay.placement import FetchedMessage
    from pillarbox.relay.relay import RelayContext
    from pillarbox.relay.send import Batch, Sent
    from pillarbox.relay.settle import Settlement

CRASHES_TO_QUARANTINE = 2
"""Crashes in a row, without a settlement in between, after which the messages of a lane are quarantined."""
MAX_RELAY_CRASHES = 3
"""Attempts that ended their relay, after which a message is dead-lettered."""
BEING_SENT = "send in progress; if this message remains, the relay crashed during the send"
"""The error of a message whose attempt was counted before the send."""
CALM = 10.0
"""Seconds after which a relay that sent whatever was in a lane when it acquired the lane forgets the crashes of former
owners; longer than it takes to find scheduled, waiting and parked messages, which come less often than ready ones."""
LEDGER_PAUSE = 0.5
"""Seconds before the next send after a write to the ledger failed."""
LEDGER_RETRY = 5.0
"""Seconds after a write to the ledger failed within which its events come again, if they are still to be sent."""
MAY_HAVE_BEEN_SENT = (
    "a relay crashed or lost its lane while it sent this message, so it may have arrived; "
    "relay.at_most_once does not send it again: check the destination, then retry or discard it"
)


@dataclass(slots=True, kw_only=True)
class CrashedLane:
    """A lane that was acquired from a crashed relay and of which nothing was settled since."""

    epoch: int
    since: float
    quarantine: int
    """How many of its messages are still to be sent one at a time; 0: it is not in quarantine."""
    last: float = math.inf
    """The last sequence of a ready message that may have been in flight at the crash."""
    calm: bool = False
    """Whether none of those is in the table, besides what is in flight."""

    def covers(self, message: Message) -> bool:
        """Whether this message may have been in flight at the crash."""
        return message.id <= self.last or message.held is not None or message.available_at is not None


class CrashGuard:
    """Which lanes and messages are in quarantine."""

    def __init__(self, *, quarantine_size: int, grace: float, clock: Clock) -> None:
        """quarantine_size: how many messages of a lane are quarantined: as many as were in flight at most. grace:
        seconds after a lane was acquired within which a relay that is alive has its attempts taken back."""
        self._quarantine_size = quarantine_size
        self._grace = grace
        self._clock = clock
        self.crashed_lanes: dict[int, CrashedLane] = {}
        """Lanes that were acquired from crashed relays, until something of them was settled."""
        self._taken_at: dict[int, float] = {}
        self._counted: dict[tuple[str, str], int] = {}
        """Messages whose attempt this relay counted before the send and did not settle since, with their lanes."""
        self.inactive = True
        """Whether no lane is in quarantine, and every attempt that this relay counted is settled."""

    def acquired(self, lanes: Iterable[OwnedLane]) -> None:
        """The relay acquired lanes; those whose owners crashed repeatedly go into quarantine."""
        for owned in lanes:
            now = self._taken_at[owned.lane] = self._clock.monotonic()
            self.crashed_lanes.pop(owned.lane, None)
            if owned.crashes:
                size = self._quarantine_size if owned.crashes >= CRASHES_TO_QUARANTINE else 0
                self.crashed_lanes[owned.lane] = CrashedLane(epoch=owned.epoch, since=now, quarantine=size)
        self._changed()

    def quarantines(self, message: Message) -> bool:
        """Whether to count the attempt before the send."""
        crashed = self.crashed_lanes.get(message.lane)
        guarded = crashed is not None and crashed.quarantine > 0 and crashed.covers(message)
        return guarded or _is_ready_with_attempts(message)

    def settled(self, messages: Iterable[Message]) -> None:
        """The relay settled these messages, and is alive."""
        for message in messages:
            self._counted.pop(message.identity, None)
            crashed = self.crashed_lanes.get(message.lane)
            if crashed is not None and (not crashed.quarantine or crashed.covers(message)):
                crashed.quarantine -= 1
                if crashed.quarantine <= 0:
                    del self.crashed_lanes[message.lane]
        self._changed()

    def fetched(self, ready: Iterable[FetchedMessage], frontier: Mapping[int, float], epochs: Epochs) -> None:
        """A fetch brought ready messages. frontier: infinite for lanes of which it left none behind. epochs: of the
        lanes when it began."""
        sequences: dict[int, list[int]] = {}
        for one in ready:
            sequences.setdefault(one.message.lane, []).append(one.message.id)
        for lane, crashed in self.crashed_lanes.items():
            if frontier.get(lane) == math.inf and epochs.get(lane) == crashed.epoch:
                found = sequences.get(lane, [])
                if crashed.last == math.inf:
                    crashed.last = max(found, default=-math.inf)
                crashed.calm = min(found, default=math.inf) > crashed.last

    async def clear_crashes(self, context: RelayContext) -> None:
        """Forget the crashes of the former owners of lanes that this relay owns for a while without crashing."""
        counted, busy = set(self._counted.values()), context.in_flight.lanes()
        before = self._clock.monotonic() - CALM
        cleared = {
            lane: crashed.epoch
            for lane, crashed in self.crashed_lanes.items()
            # In quarantine, only what was counted may have been in flight at the crash.
            if crashed.calm and crashed.since < before and lane not in (counted if crashed.quarantine else busy)
        }
        if cleared:
            await context.store.lanes.clear_crashes(cleared)
        owned = context.ownership.epochs
        self.crashed_lanes = {
            lane: crashed
            for lane, crashed in self.crashed_lanes.items()
            if owned.get(lane) == crashed.epoch and cleared.get(lane) != crashed.epoch
        }
        self._changed()

    def is_exhausted(self, message: Message) -> bool:
        """Whether the message crashed its relay so often that it is to be dead-lettered."""
        return _is_ready_with_attempts(message) and message.attempts - self.counted(message) >= MAX_RELAY_CRASHES

    def decision(self, message: Message) -> Dead | None:
        """The decision on such a message; None while a relay that counts as crashed may still turn out to be alive."""
        if self._clock.monotonic() - self._taken_at.get(message.lane, 0.0) < self._grace:
            return None
        return Dead(error=f"{message.attempts} relays crashed while sending this message", counted=False)

    def counted(self, message: Message) -> bool:
        """Whether one of its attempts is this relay's own, which the relay survived."""
        return message.attempts > 0 and message.identity in self._counted

    def count(self, message: Message) -> None:
        """Its attempt is about to be written, and may be although the answer is lost."""
        self._counted[message.identity] = message.lane
        self._changed()

    def survived(self, owns: Callable[[int], bool]) -> list[tuple[str, str]]:
        """Messages whose attempt counts in lanes that this relay lost, although it is alive."""
        return [identity for identity, lane in self._counted.items() if not owns(lane)]

    async def take_back(self, context: RelayContext) -> None:
        """Have attempts taken back that this relay counted in lanes which it lost since, although it is alive."""
        survived = self.survived(context.ownership.owns)
        if not survived:
            return
        if not context.config.at_most_once:  # with at_most_once, what may have been sent is not sent again
            await context.store.writes.request_retry(survived, by=context.relay)
        self.cleared(survived)

    def cleared(self, identities: Sequence[tuple[str, str]]) -> None:
        """Their attempts were not written after all, or are taken back."""
        for identity in identities:
            self._counted.pop(identity, None)
        self._changed()

    def _changed(self) -> None:
        self.inactive = not self._counted and not any(one.quarantine for one in self.crashed_lanes.values())

    async def count_before_send(self, context: RelayContext, epochs: Epochs, item: Item) -> Settled:
        """Count the attempt of a message in quarantine, then put the message in flight."""
        in_flight = context.in_flight
        message = item.message.to(item.destination)
        # An attempt of its own that this relay survived is not counted a second time.
        again = self.counted(message)
        self.count(message)
        # In flight from here on: its lane must not be released meanwhile.
        in_flight.keep(item)
        written = True  # for all that is known, until the store answers
        try:
            counted = await context.store.writes.count_attempt(
                epochs,
                [Resolved(item.message, item.destination)],
                error=BEING_SENT,
                counted=True,
                counted_before_send=again,
            )
            written = counted.count > 0
        except RowsRefusedError:
            written = False
            raise
        finally:
            held = in_flight.holds(item)
            in_flight.forget([item])
            if not written and not again:
                self.cleared([message.identity])
        if written and held:
            item.become(message if again else message._replace(attempts=message.attempts + 1))
            item.counted_before_send = True
            in_flight.add(item)
        return counted


class LedgerGuard:
    """Asks the ledger, before each send, what was sent before."""

    def __init__(self, context: RelayContext, ledger: Ledger, decider: Decider, settlement: Settlement) -> None:
        self._context = context
        self._ledger = ledger
        self._decider = decider
        self._settlement = settlement
        self._at_most_once = context.config.at_most_once
        self._unsent: set[tuple[str, str]] = set()
        """Entered in the ledger by this relay, and not given to a transport since."""
        self._writing = 0
        self._written = 0
        self._failed_at = -math.inf

    def writes(self) -> int | None:
        """How often the ledger was written so far, if it is to be written now; None if not."""
        again = self._failed_at + LEDGER_RETRY
        return self._written if self._writing or self._context.clock.monotonic() < again else None

    def sending(self, batch: Batch) -> None:
        """These are given to a transport now."""
        if self._unsent:
            self._unsent.difference_update(_identity(item) for _, item in batch)

    async def check(self, batch: Batch) -> tuple[Batch, Batch]:
        """What of a batch to send, entered in the ledger, and what not, which is settled or released."""
        context, ownership = self._context, self._context.ownership
        to_send: Batch = await self._not_sent_before(batch)
        # The write takes as long as the database does: too little of the lease may be left for a send to end in it.
        if not ownership.may_send():
            for _, item in to_send:
                context.release([item, *context.in_flight.stopped(item)])
            to_send = []
        sent = {item for _, item in to_send}
        dropped = [(state, item) for state, item in batch if item not in sent]
        for state, item in dropped:
            if item.is_probe:
                context.destinations.of(state.endpoint).breaker.probe_ended()
        return to_send, dropped

    async def _not_sent_before(self, batch: Batch) -> Batch:
        """Settle what the ledger knows to have been sent; returns what to send, entered in the ledger."""
        context = self._context
        own = {_identity(item) for _, item in batch} & self._unsent
        self._writing += 1
        try:
            known = await self._ledger.begin([Resolved(item.message, item.destination) for _, item in batch])
            self._written += 1
            self._failed_at = -math.inf
        except StoreUnavailableError as error:
            self._failed_at = context.clock.monotonic()
            # Nothing was sent: whatever became of the entry, they come again.
            self._unsent.update(_identity(item) for _, item in batch)
            for _, item in batch:
                context.release([item, *context.in_flight.stopped(item)])
            context.announce(StoreFailed(relay=context.relay, error=str(error), delay=LEDGER_PAUSE))
            await context.clock.sleep(LEDGER_PAUSE)
            return []
        finally:
            self._writing -= 1
        rest: list[Sent] = []
        for (state, item), before in zip(batch, known, strict=True):
            if not context.in_flight.sends(item):
                # Its lane was lost meanwhile.
                continue
            if before is PriorSend.SENT:
                context.in_flight.confirmed(item)
                self._settlement.add(item, DELIVERED)
                context.wakeups.send()
                context.announce(EventSkipped(relay=context.relay, message=item.message, destination=item.destination))
            elif before is PriorSend.UNKNOWN and self._at_most_once and _identity(item) not in own:
                block = context.config.on_exhausted == "block"
                self._decider.settle(item, Dead(error=MAY_HAVE_BEEN_SENT, block=block, counted=False))
            else:
                rest.append((state, item))
        if self._at_most_once:
            self._unsent.update(_identity(item) for _, item in rest)
        return rest


def _is_ready_with_attempts(message: Message) -> bool:
    """Only an attempt counted before its send leaves a message like this."""
    return message.attempts > 0 and message.held is None and message.available_at is None


def _identity(item: Item) -> tuple[str, str]:
    return item.message.event_id, item.destination
