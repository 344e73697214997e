"""The consumer: receive → admit → handle → commit → ack, and what becomes of a message that fails.

What must stay true: a message is acked only after its effect is committed, or after it is safe somewhere else. Whoever
fails before the ack meets the message again, and the inbox tells whether it had its effect.

    undecodable, PermanentError             a dead letter at once
    no transaction                          stays in flight and is tried again within seconds, see holding.py
    UnavailableError                        comes again, uncharged: an outage makes no dead letters
    any other exception                     comes again by the retry policy, then a dead letter
    had in hand alone by too many who died  a dead letter
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from pillarbox.core.clock import Chance, Clock, Duration, SystemClock, seconds, system_chance
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.retry import ExponentialBackoff, RetryPolicy
from pillarbox.core.source import Delivery, Source
from pillarbox.core.text import Upcast
from pillarbox.inbox import holding
from pillarbox.inbox.answers import Answers
from pillarbox.inbox.body_fields import BodyFields
from pillarbox.inbox.consumed import ConsumedEvent, read, received
from pillarbox.inbox.decisions import Ended, GivenUp, Outcome, judge, told
from pillarbox.inbox.effects import Around, Effects, Function, NotBegun, ends_the_task
from pillarbox.inbox.exclusive_lock import ExclusiveLock
from pillarbox.inbox.inbox import Inbox
from pillarbox.inbox.intake import deliveries
from pillarbox.inbox.observations import (
    ConsumerObservation,
    ConsumerObserver,
    ConsumerStarted,
    ConsumerStopped,
    ConsumerStopRequested,
    DuplicateSkipped,
    EventProcessed,
    HandlingFailed,
    SourceFailed,
    SourceRestored,
)
from pillarbox.inbox.records import check_consumer
from pillarbox.inbox.statistics import HURRY, StatisticsWriter
from pillarbox.inbox.transactions import Transactions, opener

MOST_DEATHS = 5
"""A message that was in hand alone when its consumer died so often is what kills it."""
DEFAULT_RETRY = ExponentialBackoff(base="1s", multiplier=5, max="1h", jitter="none", max_attempts=7)

F = TypeVar("F", bound=Function)


class Consumer:
    """A name, the functions that handle its events, and the transactions they work in.

    Runs on a source of its own, or as a handler in-process: `handlers.add(consumer)`. Raises ConfigurationError.
    """

    def __init__(
        self,
        source: Source | None = None,
        *,
        name: str,
        transaction: Transactions,
        inbox: Inbox | None = None,
        retry: RetryPolicy | None = None,
        upcast: Upcast | None = None,
        body_fields: BodyFields | None = None,
        workers: int = 32,
        drain_timeout: Duration = "30s",
        observers: Sequence[ConsumerObserver] = (),
        around: Around | None = None,
        clock: Clock | None = None,
        chance: Chance | None = None,
    ) -> None:
        """
        name: what the inbox keeps receipts under: stable across releases, one for each effect of an event.
        transaction: opens the transaction of one event: an engine, a sessionmaker, or a function that gives a block.
        inbox: default: one on the tables of the default outbox.
        retry: how often and when a failed message comes again; in-process the relay's policy decides instead.
        body_fields: where to find the id and the type of a message whose properties say neither, as foreign producers'
            do; None: such a message is a dead letter.
        workers: threads for functions that are not async.
        drain_timeout: how long a stop waits for what is in hand.
        around: gives a block, such as a span of a trace, to be entered around each event and its transaction.
        """
        check_consumer(name)
        if workers < 1:
            raise ConfigurationError(f"consumer {name}: workers is {workers}; at least one thread is needed")
        self.name = name
        self._source = source
        self._effects = Effects(name, inbox=inbox or Inbox(), open_block=opener(transaction), workers=workers)
        self._effects.around = around
        self._retry = retry or DEFAULT_RETRY
        self._upcast = upcast
        self._body_fields = body_fields
        self._drain = seconds(drain_timeout, field="drain_timeout")
        self._observers = list(observers)
        self._clock = clock or SystemClock()
        self._chance = chance or system_chance()
        self._statistics = StatisticsWriter(
            name, write=self._effects.add_statistics, tell=self._tell, clock=self._clock
        )
        self._answers = Answers(name, tell=self._tell, clock=self._clock)
        self._stopping = asyncio.Event()
        self._in_hand: set[asyncio.Task[None]] = set()
        self._dropped = False
        """Something in hand was not answered: it comes again."""
        self._exclusive = ExclusiveLock()
        self._task: asyncio.Task[None] | None = None

    def on(self, *event_types: str) -> Callable[[F], F]:
        """Decorate a function `(transaction, event)`, sync or async, as the effect of these types; patterns such as
        `order.*` are welcome, and the first that fits has the event. Raises ConfigurationError for a type that is
        taken: a second effect is a second consumer."""

        def decorate(function: F) -> F:
            self._effects.add(function, event_types)
            return function

        return decorate

    def observe(self, observer: ConsumerObserver) -> None:
        """Tell it everything that happens from now on."""
        self._observers.append(observer)

    def surround(self, around: Around) -> None:
        """Enter its block around each event from now on, unless there is one already."""
        self._effects.around = self._effects.around or around

    # -- on a source ----------------------------------------------------------------------------------------------

    async def run(self, *, fail_fast: bool = False) -> None:
        """Consume until `stop` is called; then finish what is in hand and close the source.

        A source that cannot be reached is tried again for as long as it takes; with `fail_fast`, one that cannot be
        reached at the start raises UnavailableError.

        When cancelled it drops what is in hand, which then comes again. Raises ConfigurationError, also for a broker
        on which something is not as configured.
        """
        source = self._checked_source()
        self._tell(ConsumerStarted(consumer=self.name))
        self._dropped = False
        try:
            if fail_fast:
                await source.connect()
            async with asyncio.TaskGroup() as group:
                intake = group.create_task(self._take_in(source, group))
                group.create_task(self._statistics.run(until=self._stopping))
                await self._stopping.wait()
                self._tell(ConsumerStopRequested(consumer=self.name))
                intake.cancel()
                await self._finish()
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            await source.aclose()
            await self._statistics.write(within=HURRY)
            self._effects.close()
            self._tell(ConsumerStopped(consumer=self.name, drained=not self._dropped))

    def stop(self) -> None:
        """Receive no more, finish what is in hand, end. Call it from the event loop that runs the consumer."""
        self._stopping.set()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._task is not None:
            await self._task

    def _checked_source(self) -> Source:
        if self._source is None:
            raise ConfigurationError(
                f"consumer {self.name} has no source to run on; give it one, or add it to Handlers for a relay to call"
            )
        if not self._effects.event_types:
            raise ConfigurationError(f"consumer {self.name} has no function; decorate one with @consumer.on(…)")
        return self._source

    async def _take_in(self, source: Source, group: asyncio.TaskGroup) -> None:
        def failed(error: UnavailableError, pause: float) -> None:
            self._tell(SourceFailed(consumer=self.name, error=str(error), delay=pause))

        def restored(seconds: float) -> None:
            self._tell(SourceRestored(consumer=self.name, seconds=seconds))

        async for delivery in deliveries(
            source, failed=failed, restored=restored, clock=self._clock, chance=self._chance
        ):
            task = group.create_task(self._answered(delivery))
            self._in_hand.add(task)
            task.add_done_callback(self._put_down)

    def _put_down(self, task: asyncio.Task[None]) -> None:
        self._in_hand.discard(task)
        self._dropped |= task.cancelled() or task.exception() is not None

    async def _finish(self) -> None:
        if self._in_hand:
            _, late = await asyncio.wait(self._in_hand, timeout=self._drain)
            for task in late:
                task.cancel()

    async def _answered(self, delivery: Delivery) -> None:
        began = self._clock.monotonic()
        async with self._exclusive.taken(alone=delivery.alone):
            outcome, event = await self._outcome(delivery)
        await self._answers.give(delivery, outcome, event, began=began)

    async def _outcome(self, delivery: Delivery) -> tuple[Outcome, ConsumedEvent | None]:
        """What becomes of it, and the event if it could be read."""
        event = None
        if delivery.deaths >= MOST_DEATHS:
            given_up = GivenUp(
                error=f"{delivery.deaths} consumers that had it in hand, and nothing else, died or lost their "
                "connection; find out what it does to them before it is sent again"
            )
            return given_up, event
        try:
            event = read(delivery.incoming, self._upcast, self._body_fields)
            return Ended(first=await self._carry_out(event, attempt=delivery.incoming.attempts + 1)), event
        except BaseException as error:
            if ends_the_task(error):
                raise
            return judge(error, delivery.incoming, self._retry, self._chance), event

    async def _carry_out(self, event: ConsumedEvent, *, attempt: int) -> bool:
        def failed(error: NotBegun, pause: float) -> None:
            about = {"consumer": self.name, "event_id": event.event_id, "event_type": event.event_type}
            self._tell(HandlingFailed(**about, attempt=attempt, error=told(error), delay=pause, counted=False))

        return await holding.carry_out(
            self._effects, event, failed=failed, stopping=self._stopping, clock=self._clock, chance=self._chance
        )

    # -- in-process -----------------------------------------------------------------------------------------------

    @property
    def event_type(self) -> tuple[str, ...]:
        """The types of all functions: what `Handlers.add` asks for."""
        return self._effects.event_types

    async def handle(self, event: Any, context: Any) -> None:
        """What `Handlers` calls: the same transaction, inbox and functions; the relay tries again and gives up.

        Raises UnavailableError if there was no transaction to work in, and whatever the function raises.
        """
        try:
            await self._handled(event, context)
        except UnavailableError:
            raise
        except (Exception, SystemExit) as error:
            self._statistics.raised(error)
            await self._statistics.write_if_due()
            raise
        await self._statistics.write_if_due()

    async def aclose(self) -> None:
        """Write what was counted in-process and is not written yet; `Handlers.aclose` calls it. It may go on."""
        await self._statistics.write(within=HURRY)

    async def _handled(self, event: Any, context: Any) -> None:
        consumed = received(event, context, self._upcast)
        began = self._clock.monotonic()
        told = {"consumer": self.name, "event_id": consumed.event_id, "event_type": consumed.event_type}
        try:
            first = await self._effects.carry_out(consumed)
        except NotBegun as error:
            raise UnavailableError(str(error)) from error
        took = self._clock.monotonic() - began
        self._tell(
            EventProcessed(**told, attempt=consumed.attempt, seconds=took) if first else DuplicateSkipped(**told)
        )

    def _tell(self, observation: ConsumerObservation) -> None:
        self._statistics.count(observation)
        for observer in self._observers:
            with suppress(Exception):  # a listener's own trouble is no reason to stop consuming
                observer(observation)
