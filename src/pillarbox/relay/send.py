"""Sending: batch after batch per transport, so many at once; the messages in flight know which may go.

What a transport answers is for the decider.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing, contextmanager, nullcontext
from datetime import datetime
from typing import Any

from pillarbox import failpoints
from pillarbox.core.clock import Clock, ProgressTimeout
from pillarbox.core.errors import PermanentError, SendError, StoreUnavailableError, UnavailableError
from pillarbox.core.ledger import Before
from pillarbox.core.observations import Announcer, EventSkipped, Sending, SendOverdue, StoreFailed
from pillarbox.core.outcome import DELIVERED, Dead, Resolved
from pillarbox.core.store import Ledger
from pillarbox.core.transport import Address, AnswersApart, Outgoing, Pace, Result, Transport, outgoing_of
from pillarbox.relay.config import RelayConfig
from pillarbox.relay.decide import Decider, error_text
from pillarbox.relay.destinations import Gate, Gates
from pillarbox.relay.envelope import compose, outgoing_headers
from pillarbox.relay.in_flight import InFlight, Item
from pillarbox.relay.lanes import Ownership
from pillarbox.relay.routing import Routing
from pillarbox.relay.settle import Settlement

LEDGER_PAUSE = 0.5
NOTED_AGAIN_WITHIN = 5.0
"""Seconds after a write to the ledger failed within which its events come again, if they are still to be sent."""
MAY_HAVE_BEEN_SENT = (
    "a relay began to send it and died or lost its lane before it knew what became of it, so it may have arrived; "
    "relay.at_most_once does not send it again: look at the far side, then retry or discard it"
)
TURN = 10
"""Batches that one task sends in a row before every other task has its turn."""
LONGEST_PAUSE = 5.0
"""Seconds after which a sender checks for messages by itself, although nothing woke it."""


class Sender:
    """Hands messages in flight to the transports, and their answers to the decider."""

    def __init__(
        self,
        *,
        relay: str,
        routing: Routing,
        gates: Gates,
        in_flight: InFlight,
        ownership: Ownership,
        settlement: Settlement,
        ledger: Ledger | None,
        decider: Decider,
        config: RelayConfig,
        clock: Clock,
        announce: Announcer,
    ) -> None:
        self.relay = relay
        self._routing = routing
        self._gates = gates
        self._in_flight = in_flight
        self._ownership = ownership
        self._settlement = settlement
        self._ledger = ledger
        self._decider = decider
        self._config = config
        self._longest_send = config.longest_send
        self._clock = clock
        self._announce = announce
        self._unsent: set[tuple[str, str]] = set()
        """Noted in the ledger by this relay, and not given to a transport since."""
        self._noting = 0
        self._note_failed_at = -math.inf
        self._notes = 0
        """Writes to the ledger: under way, failed at last, done so far."""
        self._work = asyncio.Event()
        self._sends: list[tuple[Transport, Sends]] = []
        self.stopping = False
        self.on_idle: Callable[[], None] = lambda: None
        """Told when no send is under way any more."""
        decider.on_decided = self.stir

    @property
    def idle(self) -> bool:
        return not any(sends for _, sends in self._sends)

    def could_send(self) -> Iterator[tuple[Sends, str]]:
        """The transports that could begin a send now, each with a destination that has a message to go."""
        now = self._clock.monotonic()
        if self.stopping or not self._ownership.may_send():
            return
        for transport, sends in self._sends:
            if _free(transport.pace, sends) > 0:
                for name in self._in_flight.destinations():
                    place = self._routing.place(name)
                    if place.transport is transport and self._takes(self._gates.of(place), sends, now):
                        yield sends, name
                        break

    def noting(self) -> int | None:
        """How often the ledger was written so far, if it is to be written now; None if not."""
        again = self._note_failed_at + NOTED_AGAIN_WITHIN
        return self._notes if self._noting or self._clock.monotonic() < again else None

    def _takes(self, gate: Gate, sends: Sends, now: float) -> bool:
        room = gate.place.transport.pace.room
        return (
            gate.may_send(now) > 0
            and self._in_flight.has_sendable(gate.place.name)
            and (room is None or room(gate.place.destination.address, sends.to) > 0)
        )

    def begin(self) -> None:
        """Begin whatever may be sent now, and wake the senders if anything is left."""
        for transport, sends in self._sends:
            self._begin_sends(transport, sends)
        if self._in_flight.anything_sendable:
            self.stir()

    def stir(self) -> None:
        """There may be something to send."""
        self._work.set()

    async def run(self, transport: Transport) -> None:
        """Send what may go through one transport, and judge the answers."""
        sends = Sends(on_done=lambda: self._done(transport, sends))
        self._sends.append((transport, sends))
        try:
            while True:
                sends.check()
                self._begin_sends(transport, sends)
                await self._pause()
        finally:
            await sends.end()
            self._sends.remove((transport, sends))

    def _begin_sends(self, transport: Transport, sends: Sends) -> None:
        """Begin whatever may be sent now."""
        while not self.stopping and not sends.ended and (batch := self._collect(transport, sends)):
            sends.begin(self._send_on(transport, batch, sends))

    async def _send_on(self, transport: Transport, batch: list[tuple[Gate, Item]], sends: Sends) -> None:
        """Send these and then, at once, what may go after them: the next message of a key need not wait until others
        have had their turn, nor for a task of its own."""
        done = 0
        while batch:
            await self._send(transport, batch, sends)
            done += 1
            if done % TURN == 0:
                # A transport may answer without ever waiting for anything.
                await asyncio.sleep(0)
            over = self.stopping or sends.ended or transport.pace.apart
            batch = [] if over else self._collect(transport, sends, ended=1)
            self._begin_sends(transport, sends)

    def _done(self, transport: Transport, sends: Sends) -> None:
        """Wake the sender if there was no room for another batch; tell `on_idle` after the last send."""
        if sends.failed or transport.pace.apart or len(sends) + 1 >= transport.pace.lots:
            self.stir()
        if not sends:
            self.on_idle()

    async def _pause(self) -> None:
        self._work.clear()
        pause = max(0.01, min(LONGEST_PAUSE, self._gates.wait()))
        timer = asyncio.get_running_loop().call_later(pause, self._work.set)
        try:
            await self._work.wait()
        finally:
            timer.cancel()

    def _collect(self, transport: Transport, sends: Sends, *, ended: int = 0) -> list[tuple[Gate, Item]]:
        """What to send next; `ended` of the sends that are counted as under way are over."""
        if not self._in_flight.anything_sendable:
            return []
        now, pace = self._clock.monotonic(), transport.pace
        free = _free(pace, sends) + ended
        if free <= 0 or not self._ownership.may_send():
            return []
        most = min(pace.lot, free) if pace.apart else pace.lot
        room = pace.bytes or sys.maxsize
        batch: list[tuple[Gate, Item]] = []
        for name in self._in_flight.destinations():
            place = self._routing.place(name)
            if place.transport is not transport:
                continue
            gate = self._gates.of(place)
            allowed = min(most - len(batch), gate.may_send(now))
            if allowed > 0 and pace.room is not None:
                allowed = min(allowed, self._room(gate, pace.room, sends))
            pipelined = place.destination.ordering == "pipelined"
            if allowed > 0 and (items := self._in_flight.sendable(name, allowed, most_bytes=room, pipelined=pipelined)):
                room -= sum([item.size for item in items])
                items[0].is_probe = gate.breaker.state(now) == "half-open"
                gate.sent(len(items), now)
                sends.to[place.destination.address] += len(items)
                batch += [(gate, item) for item in items]
            if len(batch) >= most or room <= 0:
                break
        return batch

    def _room(self, gate: Gate, room: Callable[[Address, Mapping[Address, int]], int], sends: Sends) -> int:
        address = gate.place.destination.address
        free = room(address, sends.to)
        gate.full = free <= 0 and bool(sends.to[address])
        if free <= 0 and not gate.full:
            # Calls from before this relay began, which it does not wait for, still occupy its whole share.
            gate.sent(1, self._clock.monotonic())  # this was the probe
            error = "earlier calls that have not returned occupy every thread of it; restart the process"
            self._decider.close(gate, error, at_fault=True)
        return free

    async def _send(self, transport: Transport, batch: Sequence[tuple[Gate, Item]], sends: Sends) -> None:
        if self._ledger is not None:
            # To write takes as long as the database does: what was true before has to be looked at again.
            rest = self._may_still_go(await self._not_sent_before(self._ledger, batch))
            to_send = {item for _, item in rest}
            dropped = [(gate, item) for gate, item in batch if item not in to_send]
            for gate, _ in dropped:
                sends.answered(gate.place.destination.address)
            for gate in [gate for gate, item in dropped if item.is_probe]:
                self._gates.of(gate.place).breaker.unanswered()
            batch = rest
        if batch and transport.pace.apart and isinstance(transport, AnswersApart):
            await self._deliver_apart(transport, transport.pace, batch, sends)
        elif transport.pace.apart:
            for one in batch:
                sends.begin(self._deliver(transport, [one], sends))
        elif batch:
            await self._deliver(transport, batch, sends)

    async def _deliver(self, transport: Transport, batch: Sequence[tuple[Gate, Item]], sends: Sends) -> None:
        sends.begun += 1
        try:
            results = await self._answers(transport, batch)
        finally:
            for gate, count in _count([gate for gate, _ in batch]):
                _answered(sends, gate, count)
        failpoints.hit("after-confirm")
        self._decider.decide(batch, results)

    async def _deliver_apart(
        self, transport: AnswersApart, pace: Pace, batch: Sequence[tuple[Gate, Item]], sends: Sends
    ) -> None:
        """Judge each answer as it comes, as if its message had been sent alone."""
        sends.begun += 1
        unanswered = dict(enumerate(batch))
        try:
            with self._told_if_overdue(pace, unanswered.values()):
                async with aclosing(self._answers_apart(transport, batch)) as answers:
                    async for answered in answers:
                        judged = [(unanswered.pop(position), result) for position, result in answered]
                        for gate, count in _count([gate for (gate, _), _ in judged]):
                            _answered(sends, gate, count)
                        failpoints.hit("after-confirm")
                        self._decider.decide_apart(judged)
        finally:
            for gate, _ in unanswered.values():
                _answered(sends, gate)

    def _may_still_go(self, batch: Sequence[tuple[Gate, Item]]) -> list[tuple[Gate, Item]]:
        """All of them, or none if too little of the lease is left for a send to end within it."""
        if self._ownership.may_send():
            return list(batch)
        for _, item in batch:
            self._decider.let_go([item, *self._in_flight.stopped(item)])
        return []

    async def _not_sent_before(self, ledger: Ledger, batch: Sequence[tuple[Gate, Item]]) -> list[tuple[Gate, Item]]:
        """Settle what the ledger knows to have been sent; returns the rest, noted as about to be sent."""
        mine = {_identity(item) for _, item in batch} & self._unsent
        self._noting += 1
        try:
            known = await ledger.begin([Resolved(item.message, item.destination) for _, item in batch])
            self._notes += 1
            self._note_failed_at = -math.inf
        except StoreUnavailableError as error:
            self._note_failed_at = self._clock.monotonic()
            # Nothing was sent: whatever became of the note, they come again.
            self._unsent.update(_identity(item) for _, item in batch)
            for _, item in batch:
                self._decider.let_go([item, *self._in_flight.stopped(item)])
            self._announce(StoreFailed(relay=self.relay, error=str(error), delay=LEDGER_PAUSE))
            await self._clock.sleep(LEDGER_PAUSE)
            return []
        finally:
            self._noting -= 1
        rest = []
        for (gate, item), before in zip(batch, known, strict=True):
            if not self._in_flight.sends(item):
                # Its lane was lost meanwhile.
                continue
            if before is Before.SENT:
                self._in_flight.confirmed(item)
                self._settlement.add(item, DELIVERED)
                self.stir()
                self._announce(EventSkipped(relay=self.relay, message=item.message, destination=item.destination))
            elif before is Before.UNKNOWN and self._config.at_most_once and _identity(item) not in mine:
                dead = Dead(error=MAY_HAVE_BEEN_SENT, block=self._config.on_exhausted == "block", charge=False)
                self._decider.settle(item, dead)
            else:
                rest.append((gate, item))
        if self._config.at_most_once:
            self._unsent.update(_identity(item) for _, item in rest)
        return rest

    async def _answers(self, transport: Transport, batch: Sequence[tuple[Gate, Item]]) -> list[Result]:
        outgoing, results = self._prepared(batch)
        began = self._clock.monotonic()
        try:
            with self._told_if_overdue(transport.pace, batch):
                async with self._in_time(transport.pace):
                    answers = list(await transport.send(list(outgoing.values()))) if outgoing else []
            if len(answers) != len(outgoing):
                raise RuntimeError(f"{len(answers)} answers to {len(outgoing)} messages")
        except TimeoutError:
            answers = [UnavailableError(f"no answer within {self._config.send_timeout}")] * len(outgoing)
        except SendError as error:
            answers = [error] * len(outgoing)
        except Exception as error:
            answers = [_at_fault(transport, error)] * len(outgoing)
        took = self._clock.monotonic() - began
        for position in outgoing:
            batch[position][1].took = took
        if not results:
            return answers
        results |= zip(outgoing, answers, strict=True)
        return [results[position] for position in range(len(batch))]

    async def _answers_apart(
        self, transport: AnswersApart, batch: Sequence[tuple[Gate, Item]]
    ) -> AsyncGenerator[list[tuple[int, Result]], None]:
        """Every position with its answer, as soon as it is there; what the transport raises answers those left."""
        outgoing, results = self._prepared(batch)
        if results:
            yield list(results.items())
        left = dict(enumerate(outgoing))
        began = self._clock.monotonic()
        failure: Result = None
        try:
            async with aclosing(transport.answers(list(outgoing.values()))) as answers:
                async for answered in answers:
                    took = self._clock.monotonic() - began
                    answered = [(left.pop(number), result) for number, result in answered]
                    for position, _ in answered:
                        batch[position][1].took = took
                    yield answered
            if left:
                raise RuntimeError(f"no answer to {len(left)} of {len(outgoing)} messages")
        except SendError as error:
            failure = error
        except Exception as error:
            failure = _at_fault(transport, error)
        for position in left.values():
            batch[position][1].took = self._clock.monotonic() - began
        if left:
            yield [(position, failure) for position in left.values()]

    def _prepared(self, batch: Sequence[tuple[Gate, Item]]) -> tuple[dict[int, Outgoing], dict[int, Result]]:
        """What goes to the transport now, and the errors of what cannot, both by position."""
        outgoing: dict[int, Outgoing] = {}
        refused: dict[int, Result] = {}
        now, epochs = self._clock.now(), self._ownership.epochs
        for position, (gate, item) in enumerate(batch):
            try:
                outgoing[position] = _outgoing(gate, item, epochs, now)
            except PermanentError as error:
                refused[position] = error
        self._tell_sending(batch)
        if self._unsent:
            self._unsent.difference_update(_identity(item) for _, item in batch)
        failpoints.hit("before-send")
        return outgoing, refused

    def _in_time(self, pace: Pace) -> AbstractAsyncContextManager[Any]:
        """As long as a send may take: as long as it gets anywhere, while the lease is renewed."""
        if pace.bounded or pace.progress is None:
            # A little more than the transport's own: it knows better what was cut off.
            return asyncio.timeout(None if pace.bounded else self._longest_send)
        progress, seen = pace.progress, None

        def getting_on() -> object:
            nonlocal seen
            if self._ownership.may_send():
                seen = progress()
            return seen

        return ProgressTimeout(self._longest_send, getting_on)

    def _told_if_overdue(self, pace: Pace, batch: Collection[tuple[Gate, Item]]) -> AbstractContextManager[None]:
        return nullcontext() if pace.overdue is None else self._telling_after(pace.overdue, batch)

    @contextmanager
    def _telling_after(self, limit: float, batch: Collection[tuple[Gate, Item]]) -> Iterator[None]:
        timer = asyncio.get_running_loop().call_later(limit, self._overdue, batch, limit)
        try:
            yield
        finally:
            timer.cancel()

    def _overdue(self, batch: Collection[tuple[Gate, Item]], limit: float) -> None:
        """Sends that hang keep their keys and what they occupy; their destination gets nothing more for now."""
        for gate, item in [(self._gates.of(gate.place), item) for gate, item in batch]:
            self._announce(
                SendOverdue(relay=self.relay, message=item.message, destination=item.destination, seconds=limit)
            )
            error = f"no answer to event {item.message.event_id} after {limit:g} s; its key waits for it"
            self._decider.close(gate, error, at_fault=True)

    def _tell_sending(self, batch: Sequence[tuple[Gate, Item]]) -> None:
        if self._announce.observers:
            by_name: defaultdict[str, list[Item]] = defaultdict(list)
            for gate, item in batch:
                by_name[gate.place.name].append(item)
            for name, items in by_name.items():
                messages = tuple(item.message for item in items)
                self._announce(Sending(relay=self.relay, destination=name, messages=messages))


def _outgoing(gate: Gate, item: Item, epochs: Mapping[int, int], now: datetime) -> Outgoing:
    message, destination = item.message, gate.place.destination
    body, content_type = compose(message, destination.body, now=now)
    epoch = epochs.get(message.lane, 0)
    headers = outgoing_headers(message)
    return outgoing_of((message, destination.address, body, content_type, headers, item.attempt, epoch))


def _free(pace: Pace, sends: Sends) -> int:
    """How many sends more may be under way at once; messages, where their answers come apart."""
    return pace.lot * pace.lots - sends.messages if pace.apart else pace.lots - len(sends)


def _count(gates: list[Gate]) -> Collection[tuple[Gate, int]]:
    """Each with how often it is there."""
    if gates and gates.count(gates[0]) == len(gates):  # as in most batches; a Counter is slower
        return [(gates[0], len(gates))]
    return Counter(gates).items()


def _answered(sends: Sends, gate: Gate, count: int = 1) -> None:
    """So many messages through this gate are no longer being sent."""
    sends.answered(gate.place.destination.address, count)
    gate.full = False


def _at_fault(transport: object, error: Exception) -> UnavailableError:
    """The transport raised what is no send error. What it sent is unknown, so the relay retries: nothing is lost."""
    return UnavailableError(f"{type(transport).__name__} is at fault: {error_text(error)}")


def _identity(item: Item) -> tuple[str, str]:
    return item.message.event_id, item.destination


class Sends:
    """`on_done` is told after each of them."""

    def __init__(self, *, on_done: Callable[[], None]) -> None:
        self._on_done = on_done
        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self.ended = False
        """Nothing may begin any more."""
        self.to: Counter[Address] = Counter()
        """How many messages are being sent to each address."""
        self.begun = 0
        """How many lots were handed to the transport so far."""

    @property
    def messages(self) -> int:
        """How many messages are being sent."""
        return self.to.total()

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it in a task of its own."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def answered(self, address: Address, count: int = 1) -> None:
        """So many messages to this address are no longer being sent."""
        self.to[address] -= count
        if not self.to[address]:
            del self.to[address]

    @property
    def failed(self) -> bool:
        return self._failure is not None

    def check(self) -> None:
        """Raise what went wrong in a send, if anything did."""
        if self._failure is not None:
            raise self._failure

    async def end(self) -> None:
        """Cancel all of them, and return when they have ended."""
        self.ended = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = self._failure or error
        self._on_done()
