"""Sending: batch after batch per transport, several at once. The decider decides what the results mean."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from pillarbox import failpoints
from pillarbox.core.errors import SendError, UnavailableError
from pillarbox.core.transport import Address, Capacity, Outgoing, Pace, SendResult, StreamingTransport, Transport
from pillarbox.relay.decide import Decider, announce_sending, at_fault
from pillarbox.relay.envelope import prepare
from pillarbox.relay.guards import LedgerGuard
from pillarbox.timeouts import StallTimeout, raise_if_cancelled, within

if TYPE_CHECKING:
    from pillarbox.relay.destination_state import DestinationState
    from pillarbox.relay.in_flight import Item
    from pillarbox.relay.relay import RelayContext
    from pillarbox.relay.routing import DestinationEndpoint
    from pillarbox.relay.settle import Settlement

TURN = 10
"""Batches that one task sends in a row before every other task has its turn."""
OCCUPIED = "earlier calls that have not returned occupy every thread of it; restart the process"
MAX_SEND_PAUSE = 5.0
"""Seconds after which a sender checks for messages by itself, although nothing woke it."""

Sent = tuple["DestinationState", "Item"]
"""A message to send, with the state of its destination."""
InTime = Callable[[Awaitable[Sequence[SendResult]]], Awaitable[Sequence[SendResult]]]
Indexed = list[tuple[int, SendResult]]
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
        self.counted = pace.independent_results or pace.capacity is not None
        self.begun = 0
        """Batches given to the transport so far."""

    def __len__(self) -> int:
        return self._running

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Send in a task of its own."""
        self._running += 1
        self._group.create_task(work).add_done_callback(self._done)

    def finished(self, state: DestinationState, count: int = 1) -> None:
        """This many messages for this destination are no longer being sent."""
        state.full = False
        if self.counted:
            address = state.endpoint.destination.address
            self.to[address] -= count
            if not self.to[address]:
                del self.to[address]

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running -= 1
        self.ended |= task.cancelled() or task.exception() is not None  # then the group ends: nothing may begin in it
        self._on_done()


class Sender:
    """Gives messages in flight to the transports, and their results to the decider."""

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
        return not any(sends for _, sends in self._sends)

    def could_send(self) -> Iterator[tuple[Sends, str]]:
        """The transports that could begin a send now, each with a destination that has a message to send."""
        now = self._clock.monotonic()
        if self._lifecycle.draining or not self._ownership.may_send():
            return
        for transport, sends in self._sends:
            if _free_sends(transport.pace, sends) > 0:
                for name in self._in_flight.destinations():
                    endpoint = self._context.routing.endpoint(name)
                    if endpoint.transport is transport and self._can_send(endpoint, sends, now):
                        yield sends, name
                        break

    def _can_send(self, endpoint: DestinationEndpoint, sends: Sends, now: float) -> bool:
        capacity = endpoint.transport.pace.capacity
        if self._destinations.of(endpoint).may_send(now) <= 0 or not self._in_flight.has_sendable(endpoint.name):
            return False
        return capacity is None or capacity(endpoint.destination.address, sends.to) > 0

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
            if transport.pace.independent_results:
                return  # the sender is woken, and collects one batch in place of all that have ended meanwhile
            done += 1
            if done % TURN == 0:  # a transport may return results without ever waiting for anything
                await asyncio.sleep(0)
            batch = [] if self._lifecycle.draining or sends.ended else self._collect(transport, sends, ended=1)
            self._begin_sends(transport, sends)

    def _done(self, transport: Transport, sends: Sends) -> None:
        """Wake the sender if there was no room for another batch; notice when no send is under way."""
        if transport.pace.independent_results or len(sends) + 1 >= transport.pace.concurrency:
            self._wakeups.send()
        if not sends:
            self._wakeups.notice()

    async def _pause(self) -> None:
        await self._wakeups.until_send(max(0.01, min(MAX_SEND_PAUSE, self._destinations.wait())))

    def _collect(self, transport: Transport, sends: Sends, *, ended: int = 0) -> list[Sent]:
        """What to send next; `ended` of the sends under way are over."""
        if not self._in_flight.anything_sendable:
            return []
        now, pace = self._clock.monotonic(), transport.pace
        free = _free_sends(pace, sends) + ended
        if free <= 0 or not self._ownership.may_send():
            return []
        limit = min(pace.batch_size, free) if pace.independent_results else pace.batch_size
        left = pace.bytes or sys.maxsize
        batch: list[Sent] = []
        for name in self._in_flight.destinations():
            endpoint = self._context.routing.endpoint(name)
            if endpoint.transport is not transport:
                continue
            state = self._destinations.of(endpoint)
            allowed = min(limit - len(batch), state.may_send(now))
            if allowed > 0 and pace.capacity is not None:
                allowed = min(allowed, self._free_at(state, pace.capacity, sends))
            pipelined = endpoint.destination.ordering == "pipelined"
            if allowed > 0 and (items := self._in_flight.sendable(name, allowed, max_bytes=left, pipelined=pipelined)):
                left -= sum([item.size for item in items])
                items[0].is_probe = state.sent(len(items), now)
                if sends.counted:
                    sends.to[endpoint.destination.address] += len(items)
                batch += [(state, item) for item in items]
            if len(batch) >= limit or left <= 0:
                break
        return batch

    def _free_at(self, state: DestinationState, capacity: Capacity, sends: Sends) -> int:
        address = state.endpoint.destination.address
        free = capacity(address, sends.to)
        state.full = free <= 0 and bool(sends.to[address])
        if free <= 0 and not state.full:
            # Calls from before this relay began, which it does not wait for, still occupy its whole share.
            state.sent(1, self._clock.monotonic())  # this was the probe
            self._decider.mark_unavailable(state, OCCUPIED, at_fault=True)
        return free

    async def _send(self, transport: Transport, batch: Batch, sends: Sends) -> None:
        if self.ledger is not None:
            batch, dropped = await self.ledger.check(batch)
            for state, _ in dropped:
                sends.finished(state)
        pace = transport.pace
        if batch and pace.independent_results and pace.has_own_timeout and isinstance(transport, StreamingTransport):
            await self._deliver_stream(transport, pace, batch, sends)
        elif pace.independent_results:
            for one in batch:
                sends.begin(self._deliver(transport, [one], sends))
        elif batch:
            await self._deliver(transport, batch, sends)

    async def _deliver(self, transport: Transport, batch: Batch, sends: Sends) -> None:
        sends.begun += 1
        try:
            results = await self._results(transport, batch, sends)
        finally:
            for state, count in _count([state for state, _ in batch]):
                sends.finished(state, count)
        if failpoints.armed:
            failpoints.hit("after-confirm")
        self._decider.decide_batch(batch, results)

    async def _deliver_stream(self, transport: StreamingTransport, pace: Pace, batch: Batch, sends: Sends) -> None:
        """Decide on each result as it comes, as if its message had been sent alone."""
        sends.begun += 1
        unfinished = dict(enumerate(batch))
        overdue = self._overdue_timer(pace, unfinished.values())
        try:
            async with aclosing(self._stream_results(transport, batch)) as stream:
                async for results in stream:
                    decided = [(unfinished.pop(position), result) for position, result in results]
                    for state, count in _count([state for (state, _), _ in decided]):
                        sends.finished(state, count)
                    if failpoints.armed:
                        failpoints.hit("after-confirm")
                    self._decider.decide_each(decided)
        finally:
            if overdue is not None:
                overdue.cancel()
            for state, _ in unfinished.values():
                sends.finished(state)

    async def _results(self, transport: Transport, batch: Batch, sends: Sends) -> list[SendResult]:
        prepared, refused = self._prepared(batch)
        began = self._clock.monotonic()
        overdue = self._overdue_timer(transport.pace, batch)
        try:
            outgoing = list(prepared.values())
            results: list[SendResult] = list(await sends.in_time(transport.send(outgoing))) if outgoing else []
            if len(results) != len(prepared):
                raise RuntimeError(f"{len(results)} results for {len(prepared)} messages")
        except TimeoutError:
            results = [UnavailableError(f"no result within {self._context.config.send_timeout}")] * len(prepared)
        except SendError as error:
            results = [error] * len(prepared)
        except (Exception, asyncio.CancelledError) as error:
            raise_if_cancelled(error)
            results = [at_fault(transport, error)] * len(prepared)
        finally:
            if overdue is not None:
                overdue.cancel()
        took = self._clock.monotonic() - began
        for position in prepared:
            batch[position][1].took = took
        if not refused:
            return results
        by_position = refused | dict(zip(prepared, results, strict=True))
        return [by_position[position] for position in range(len(batch))]

    async def _stream_results(self, transport: StreamingTransport, batch: Batch) -> AsyncGenerator[Indexed, None]:
        """Every position with its result, as soon as it is there; an exception is the result of those that are left."""
        prepared, refused = self._prepared(batch)
        if refused:
            yield list(refused.items())
        left = dict(enumerate(prepared))
        began = self._clock.monotonic()
        failure: SendResult = None
        try:
            async with aclosing(transport.stream(list(prepared.values()))) as stream:
                async for results in stream:
                    took = self._clock.monotonic() - began
                    indexed = [(left.pop(number), result) for number, result in results]
                    for position, _ in indexed:
                        batch[position][1].took = took
                    yield indexed
            if left:
                raise RuntimeError(f"no result for {len(left)} of {len(prepared)} messages")
        except (Exception, asyncio.CancelledError) as error:
            raise_if_cancelled(error)
            failure = error if isinstance(error, SendError) else at_fault(transport, error)
        for position in left.values():
            batch[position][1].took = self._clock.monotonic() - began
        if left:
            yield [(position, failure) for position in left.values()]

    def _prepared(self, batch: Batch) -> tuple[dict[int, Outgoing], dict[int, SendResult]]:
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
        if pace.has_own_timeout:
            return lambda send: send
        # A little more than the timeout of the transport, which knows better what was cut off.
        limit = self._context.config.max_send_seconds
        if pace.progress is None:
            return partial(within, limit)
        progress, seen = pace.progress, None

        def observed_progress() -> object:
            nonlocal seen
            if self._ownership.may_send():
                seen = progress()
            return seen

        return StallTimeout(limit, observed_progress).wait

    def _overdue_timer(self, pace: Pace, batch: Collection[Sent]) -> asyncio.TimerHandle | None:
        if pace.overdue is None:
            return None
        return asyncio.get_running_loop().call_later(pace.overdue, self._decider.overdue, batch, pace.overdue)


def _free_sends(pace: Pace, sends: Sends) -> int:
    """How many more sends may be under way at once; messages, where each has its own result."""
    if pace.independent_results:
        return pace.batch_size * pace.concurrency - sends.to.total()
    return pace.concurrency - len(sends)


def _count(states: list[DestinationState]) -> Collection[tuple[DestinationState, int]]:
    """Counts per destination."""
    if states and states.count(states[0]) == len(states):  # as in most batches; a Counter is slower
        return [(states[0], len(states))]
    return Counter(states).items()
