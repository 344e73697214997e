"""Sending: batch after batch per transport, several at once. The decider decides what the answers mean."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from pillarbox import failpoints
from pillarbox.core.errors import SendError, UnavailableError
from pillarbox.core.transport import Address, Outgoing, Pace, Result, StreamingTransport, Transport
from pillarbox.relay.crash_guard import LedgerGuard
from pillarbox.relay.decide import Decider, announce_sending, at_fault
from pillarbox.relay.envelope import prepare
from pillarbox.timeouts import StallTimeout, within

if TYPE_CHECKING:
    from pillarbox.relay.breaker import DestinationState
    from pillarbox.relay.in_flight import Item
    from pillarbox.relay.routing import Endpoint
    from pillarbox.relay.settle import Settlement
    from pillarbox.relay.supervisor import RelayContext

TURN = 10
"""Batches that one task sends in a row before every other task has its turn."""
OCCUPIED = "earlier calls that have not returned occupy every thread of it; restart the process"
LONGEST_PAUSE = 5.0
"""Seconds after which a sender checks for messages by itself, although nothing woke it."""

Sent = tuple["DestinationState", "Item"]
"""A message to send, with the state of its destination."""
Window = Callable[[Address, Mapping[Address, int]], int]
InTime = Callable[[Awaitable[Sequence[Result]]], Awaitable[Sequence[Result]]]
Answers = list[tuple[int, Result]]
Batch = Sequence[Sent]


class Sends:
    """The sends of one transport that are under way: a task each, counted per address."""

    def __init__(self, group: asyncio.TaskGroup, pace: Pace, in_time: InTime, on_done: Callable[[], None]) -> None:
        self._group = group
        self.in_time = in_time
        """Awaits a send of the transport for as long as it may take. Raises TimeoutError."""
        self._on_done = on_done
        self._running = 0
        self.ended = False  # nothing may begin any more
        self.to: Counter[Address] = Counter()
        """How many messages are being sent to each address, if they are `counted`."""
        self.counted = pace.apart or pace.window is not None
        self.begun = 0
        """Batches given to the transport so far."""

    def __len__(self) -> int:
        return self._running

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Send in a task of its own."""
        self._running += 1
        self._group.create_task(work).add_done_callback(self._done)

    def answered(self, state: DestinationState, count: int = 1) -> None:
        """So many messages for this destination are no longer being sent."""
        state.full = False
        if self.counted:
            address = state.endpoint.destination.address
            self.to[address] -= count
            if not self.to[address]:
                del self.to[address]

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running -= 1
        if task.cancelled() or task.exception() is not None:
            # The group ends: nothing may begin in it.
            self.ended = True
        self._on_done()


class Sender:
    """Gives messages in flight to the transports, and their answers to the decider."""

    def __init__(self, context: RelayContext, settlement: Settlement) -> None:
        self._context = context
        self._destinations = context.destinations
        self._in_flight = context.in_flight
        self._ownership = context.ownership
        self._lifecycle = context.lifecycle
        self._wakeups = context.wakeups
        self._clock = context.clock
        self._decider = decider = Decider(context, settlement)
        ledger = context.store.ledger
        self.ledger = None if ledger is None else LedgerGuard(context, ledger, decider, settlement)
        self._sends: list[tuple[Transport, Sends]] = []

    @property
    def idle(self) -> bool:
        """Whether no send is under way."""
        return not any(sends for _, sends in self._sends)

    def could_send(self) -> Iterator[tuple[Sends, str]]:
        """The transports that could begin a send now, each with a destination that has a message to send."""
        now = self._clock.monotonic()
        if self._lifecycle.draining or not self._ownership.may_send():
            return
        for transport, sends in self._sends:
            if _free(transport.pace, sends) > 0:
                for name in self._in_flight.destinations():
                    endpoint = self._context.routing.endpoint(name)
                    if endpoint.transport is transport and self._can_send(endpoint, sends, now):
                        yield sends, name
                        break

    def _can_send(self, endpoint: Endpoint, sends: Sends, now: float) -> bool:
        window = endpoint.transport.pace.window
        if self._destinations.of(endpoint).may_send(now) <= 0 or not self._in_flight.has_sendable(endpoint.name):
            return False
        return window is None or window(endpoint.destination.address, sends.to) > 0

    def begin(self) -> None:
        """Begin whatever may be sent now, and wake the senders if anything is left."""
        for transport, sends in self._sends:
            self._begin_sends(transport, sends)
        if self._in_flight.anything_sendable:
            self._wakeups.send()

    async def run(self, transport: Transport) -> None:
        """Send what may be sent through one transport. Raises what goes wrong in a send."""
        async with asyncio.TaskGroup() as group:
            sends = Sends(group, transport.pace, self._in_time(transport.pace), lambda: self._done(transport, sends))
            self._sends.append((transport, sends))
            try:
                while True:
                    self._begin_sends(transport, sends)
                    await self._pause()
            finally:
                sends.ended = True
                self._sends.remove((transport, sends))

    def _begin_sends(self, transport: Transport, sends: Sends) -> None:
        """Begin whatever may be sent now."""
        while not self._lifecycle.draining and not sends.ended and (batch := self._collect(transport, sends)):
            sends.begin(self._send_on(transport, batch, sends))

    async def _send_on(self, transport: Transport, batch: Batch, sends: Sends) -> None:
        """Send these and then, at once, what may be sent after them, without a task of its own."""
        done = 0
        while batch:
            await self._send(transport, batch, sends)
            done += 1
            if done % TURN == 0:
                # A transport may answer without ever waiting for anything.
                await asyncio.sleep(0)
            over = self._lifecycle.draining or sends.ended or transport.pace.apart
            batch = [] if over else self._collect(transport, sends, ended=1)
            self._begin_sends(transport, sends)

    def _done(self, transport: Transport, sends: Sends) -> None:
        """Wake the sender if there was no room for another batch; notice when no send is under way."""
        if transport.pace.apart or len(sends) + 1 >= transport.pace.concurrency:
            self._wakeups.send()
        if not sends:
            self._wakeups.notice()

    async def _pause(self) -> None:
        await self._wakeups.until_send(max(0.01, min(LONGEST_PAUSE, self._destinations.wait())))

    def _collect(self, transport: Transport, sends: Sends, *, ended: int = 0) -> list[Sent]:
        """What to send next; `ended` of the sends under way are over."""
        if not self._in_flight.anything_sendable:
            return []
        now, pace = self._clock.monotonic(), transport.pace
        free = _free(pace, sends) + ended
        if free <= 0 or not self._ownership.may_send():
            return []
        most = min(pace.batch_size, free) if pace.apart else pace.batch_size
        left = pace.bytes or sys.maxsize
        batch: list[Sent] = []
        for name in self._in_flight.destinations():
            endpoint = self._context.routing.endpoint(name)
            if endpoint.transport is not transport:
                continue
            state = self._destinations.of(endpoint)
            allowed = min(most - len(batch), state.may_send(now))
            if allowed > 0 and pace.window is not None:
                allowed = min(allowed, self._free(state, pace.window, sends))
            pipelined = endpoint.destination.ordering == "pipelined"
            if allowed > 0 and (items := self._in_flight.sendable(name, allowed, most_bytes=left, pipelined=pipelined)):
                left -= sum([item.size for item in items])
                items[0].is_probe = state.sent(len(items), now)
                if sends.counted:
                    sends.to[endpoint.destination.address] += len(items)
                batch += [(state, item) for item in items]
            if len(batch) >= most or left <= 0:
                break
        return batch

    def _free(self, state: DestinationState, window: Window, sends: Sends) -> int:
        address = state.endpoint.destination.address
        free = window(address, sends.to)
        state.full = free <= 0 and bool(sends.to[address])
        if free <= 0 and not state.full:
            # Calls from before this relay began, which it does not wait for, still occupy its whole share.
            state.sent(1, self._clock.monotonic())  # this was the probe
            self._decider.close(state, OCCUPIED, at_fault=True)
        return free

    async def _send(self, transport: Transport, batch: Batch, sends: Sends) -> None:
        if self.ledger is not None:
            batch, dropped = await self.ledger.check(batch)
            for state, _ in dropped:
                sends.answered(state)
        if batch and transport.pace.apart and isinstance(transport, StreamingTransport):
            await self._deliver_stream(transport, transport.pace, batch, sends)
        elif transport.pace.apart:
            for one in batch:
                sends.begin(self._deliver(transport, [one], sends))
        elif batch:
            await self._deliver(transport, batch, sends)

    async def _deliver(self, transport: Transport, batch: Batch, sends: Sends) -> None:
        sends.begun += 1
        try:
            results = await self._answers(transport, batch, sends)
        finally:
            for state, count in _count([state for state, _ in batch]):
                sends.answered(state, count)
        if failpoints.armed:
            failpoints.hit("after-confirm")
        self._decider.answered(batch, results)

    async def _deliver_stream(self, transport: StreamingTransport, pace: Pace, batch: Batch, sends: Sends) -> None:
        """Decide on each answer as it comes, as if its message had been sent alone."""
        sends.begun += 1
        unanswered = dict(enumerate(batch))
        overdue = self._overdue_timer(pace, unanswered.values())
        try:
            async with aclosing(self._stream_results(transport, batch)) as answers:
                async for answered in answers:
                    decided = [(unanswered.pop(position), result) for position, result in answered]
                    for state, count in _count([state for (state, _), _ in decided]):
                        sends.answered(state, count)
                    if failpoints.armed:
                        failpoints.hit("after-confirm")
                    self._decider.answered_apart(decided)
        finally:
            if overdue is not None:
                overdue.cancel()
            for state, _ in unanswered.values():
                sends.answered(state)

    async def _answers(self, transport: Transport, batch: Batch, sends: Sends) -> list[Result]:
        prepared, results = self._prepared(batch)
        began = self._clock.monotonic()
        overdue = self._overdue_timer(transport.pace, batch)
        try:
            answers: list[Result] = []
            if prepared:
                answers = list(await sends.in_time(transport.send(list(prepared.values()))))
            if len(answers) != len(prepared):
                raise RuntimeError(f"{len(answers)} answers to {len(prepared)} messages")
        except TimeoutError:
            answers = [UnavailableError(f"no answer within {self._context.config.send_timeout}")] * len(prepared)
        except SendError as error:
            answers = [error] * len(prepared)
        except Exception as error:
            answers = [at_fault(transport, error)] * len(prepared)
        finally:
            if overdue is not None:
                overdue.cancel()
        took = self._clock.monotonic() - began
        for position in prepared:
            batch[position][1].took = took
        if not results:
            return answers
        results |= zip(prepared, answers, strict=True)
        return [results[position] for position in range(len(batch))]

    async def _stream_results(self, transport: StreamingTransport, batch: Batch) -> AsyncGenerator[Answers, None]:
        """Every position with its answer, as soon as it is there; what the transport raises answers those left."""
        prepared, results = self._prepared(batch)
        if results:
            yield list(results.items())
        left = dict(enumerate(prepared))
        began = self._clock.monotonic()
        failure: Result = None
        try:
            async with aclosing(transport.stream(list(prepared.values()))) as answers:
                async for answered in answers:
                    took = self._clock.monotonic() - began
                    answered = [(left.pop(number), result) for number, result in answered]
                    for position, _ in answered:
                        batch[position][1].took = took
                    yield answered
            if left:
                raise RuntimeError(f"no answer to {len(left)} of {len(prepared)} messages")
        except Exception as error:
            failure = error if isinstance(error, SendError) else at_fault(transport, error)
        for position in left.values():
            batch[position][1].took = self._clock.monotonic() - began
        if left:
            yield [(position, failure) for position in left.values()]

    def _prepared(self, batch: Batch) -> tuple[dict[int, Outgoing], dict[int, Result]]:
        """What the transport gets now, and the errors of what cannot be sent, both by position."""
        prepared = prepare(batch, self._ownership.epochs, self._clock.now())
        announce_sending(self._context, batch)
        if self.ledger is not None:
            self.ledger.sending(batch)
        if failpoints.armed:
            failpoints.hit("before-send")
        return prepared

    def _in_time(self, pace: Pace) -> InTime:
        """The timeout of sends: while the lease is renewed, it extends with the progress of the transport."""
        if pace.bounded:
            return lambda send: send
        # A little more than the transport's own: it knows better what was cut off.
        limit = self._context.config.longest_send
        if pace.progress is None:
            return partial(within, limit)
        progress, seen = pace.progress, None

        def getting_on() -> object:
            nonlocal seen
            if self._ownership.may_send():
                seen = progress()
            return seen

        return StallTimeout(limit, getting_on).wait

    def _overdue_timer(self, pace: Pace, batch: Collection[Sent]) -> asyncio.TimerHandle | None:
        if pace.overdue is None:
            return None
        return asyncio.get_running_loop().call_later(pace.overdue, self._decider.overdue, batch, pace.overdue)


def _free(pace: Pace, sends: Sends) -> int:
    """How many more sends may be under way at once; messages, where their answers come apart."""
    return pace.batch_size * pace.concurrency - sends.to.total() if pace.apart else pace.concurrency - len(sends)


def _count(states: list[DestinationState]) -> Collection[tuple[DestinationState, int]]:
    """Each with how often it is there."""
    if states and states.count(states[0]) == len(states):  # as in most batches; a Counter is slower
        return [(states[0], len(states))]
    return Counter(states).items()
