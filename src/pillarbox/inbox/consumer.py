"""The consumer: receive → admit → handle → commit → ack.

Invariant: the consumer acks a message only after its transaction is committed, or after the message is safe elsewhere.
If the consumer crashes before the ack, the source delivers the message again and the inbox detects the duplicate.

    undecodable, PermanentError       rejected: a dead letter at once
    no transaction                    stays in flight and is retried within seconds, see outages.py
    UnavailableError                  retried without limit as a deferral: an outage makes no dead letters
    any other exception               retried by the retry policy, then a dead letter
    too many crashes in quarantine    a dead letter
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from pillarbox.core.clock import Clock, Duration, RandomSource, SystemClock, seconds, system_rng
from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.payload import Upcast
from pillarbox.core.retry import RetryPolicy
from pillarbox.core.source import Delivery, Source
from pillarbox.core.transport import messaging_system
from pillarbox.inbox.acknowledgement import (
    AckMessage,
    Acknowledgement,
    Acknowledger,
    RejectMessage,
    decide,
    reason_of,
)
from pillarbox.inbox.admission import check_consumer
from pillarbox.inbox.consumed_event import BodyFields, ConsumedEvent, read, read_received
from pillarbox.inbox.dispatch import Around, ConsumerFunction, Dispatcher, NoTransactionError, ends_the_task
from pillarbox.inbox.exclusive_lock import ExclusiveLock
from pillarbox.inbox.inbox import Inbox
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
from pillarbox.inbox.outages import handle_with_transaction, receive_all
from pillarbox.inbox.statistics import FOREGROUND_TIMEOUT, StatisticsWriter
from pillarbox.inbox.transactions import Transactions, opener
from pillarbox.retry_policies import ExponentialBackoff

MAX_CRASHES = 5
"""Consumers that may crash with the same message in quarantine before it is dead-lettered."""
DEFAULT_RETRY = ExponentialBackoff(base="1s", multiplier=5, max_delay="1h", jitter="none", max_attempts=7)

F = TypeVar("F", bound=ConsumerFunction)


class Consumer:
    """Calls a handler for each event that it receives, at most once per event, in a transaction with the inbox.

    Runs on its own source, or in-process as a handler of a relay: `handlers.add(consumer)`. Raises ConfigurationError.
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
        rng: RandomSource | None = None,
    ) -> None:
        """
        name: identifies the consumer in the inbox; keep it across releases. One consumer per effect of an event.
        transaction: opens the transaction of an event: an engine, a sessionmaker, or a function that returns a context
            manager.
        inbox: default: an inbox with the default prefix and schema.
        retry: when and how often failed messages are retried; in-process the relay's policy applies instead.
        body_fields: the fields with the id and the type of messages whose properties lack them, as those of other
            systems do; None: such messages are dead-lettered.
        workers: threads for handlers that are not async, at least 1.
        drain_timeout: how long a stop waits for messages in flight; zero: not at all.
        around: returns a context manager, such as a span of a trace, to enter around each event and its transaction.
        """
        check_consumer(name)
        if workers < 1:
            raise ConfigurationError(f"consumer {name}: workers is {workers}; use at least 1")
        self.name = name
        self._source = source
        self._messaging_system = "" if source is None else messaging_system(type(source))
        self._dispatcher = Dispatcher(name, inbox=inbox or Inbox(), open_block=opener(transaction), workers=workers)
        self._dispatcher.around = around
        self._retry = retry or DEFAULT_RETRY
        self._upcast = upcast
        self._body_fields = body_fields
        self._drain = seconds(drain_timeout, field="drain_timeout")
        self._observers = list(observers)
        self._clock = clock or SystemClock()
        self._rng = rng or system_rng()
        self._statistics = StatisticsWriter(
            name, write=self._dispatcher.add_statistics, announce=self._announce, clock=self._clock
        )
        self._acknowledger = Acknowledger(name, announce=self._announce, clock=self._clock)
        self._stopping = asyncio.Event()
        self._in_flight: set[asyncio.Task[None]] = set()
        self._dropped = False
        """A message in flight was not acknowledged: its source delivers it again."""
        self._lock = ExclusiveLock()
        self._task: asyncio.Task[None] | None = None

    def on(self, *event_types: str) -> Callable[[F], F]:
        """Decorate a function `(transaction, event)`, sync or async, as the handler of these event types.

        Patterns such as `order.*` are allowed; the first handler that matches is called. Raises ConfigurationError if a
        type has a handler already.
        """

        def decorate(function: F) -> F:
            self._dispatcher.add(function, event_types)
            return function

        return decorate

    def observe(self, observer: ConsumerObserver) -> None:
        """Call the observer with every observation from now on."""
        self._observers.append(observer)

    def surround(self, around: Around) -> None:
        """Enter this context manager around each event from now on, unless there is one already."""
        self._dispatcher.around = self._dispatcher.around or around

    # -- on a source ----------------------------------------------------------------------------------------------

    async def run(self, *, fail_fast: bool = False) -> None:
        """Consume until `stop` is called; then finish the messages in flight and close the source.

        While the source is unavailable, the consumer retries without limit. With `fail_fast` it raises UnavailableError
        if the source is unavailable at the start.

        When cancelled, it drops the messages in flight, and the source delivers them again. Raises ConfigurationError,
        also if a queue or an exchange of the broker differs from the settings.
        """
        source = self._checked_source()
        self._announce(ConsumerStarted(consumer=self.name))
        self._dropped = False
        try:
            if fail_fast:
                await source.connect()
            async with asyncio.TaskGroup() as group:
                receiver = group.create_task(self._receive(source, group))
                group.create_task(self._statistics.run(until=self._stopping))
                await self._stopping.wait()
                self._announce(ConsumerStopRequested(consumer=self.name))
                receiver.cancel()
                await self._finish()
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            await source.aclose()
            await self._statistics.write(within=FOREGROUND_TIMEOUT)
            self._dispatcher.close()
            self._announce(ConsumerStopped(consumer=self.name, drained=not self._dropped))

    def stop(self) -> None:
        """Stop receiving and finish the messages in flight. Call it from the event loop that runs the consumer."""
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
                f"consumer {self.name} has no source to run on; pass one, or add the consumer to `Handlers`"
            )
        if not self._dispatcher.event_types:
            raise ConfigurationError(f"consumer {self.name} has no handler; decorate a function with @consumer.on(…)")
        return self._source

    async def _receive(self, source: Source, group: asyncio.TaskGroup) -> None:
        def failed(error: UnavailableError, pause: float) -> None:
            self._announce(SourceFailed(consumer=self.name, error=str(error), delay=pause))

        def restored(seconds: float) -> None:
            self._announce(SourceRestored(consumer=self.name, seconds=seconds))

        async for delivery in receive_all(source, failed=failed, restored=restored, clock=self._clock, rng=self._rng):
            task = group.create_task(self._process(delivery))
            self._in_flight.add(task)
            task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        self._dropped |= task.cancelled() or task.exception() is not None

    async def _finish(self) -> None:
        if self._in_flight:
            _, late = await asyncio.wait(self._in_flight, timeout=self._drain)
            for task in late:
                task.cancel()

    async def _process(self, delivery: Delivery) -> None:
        began = self._clock.monotonic()
        async with self._lock.taken(exclusive=delivery.quarantined):
            decision, event = await self._handle(delivery)
        await self._acknowledger.acknowledge(delivery, decision, event, began=began)

    async def _handle(self, delivery: Delivery) -> tuple[Acknowledgement, ConsumedEvent | None]:
        """How to acknowledge the message, and the event if it could be read."""
        event = None
        if delivery.crashes >= MAX_CRASHES:
            rejected = RejectMessage(
                error=f"{delivery.crashes} consumers crashed or lost their connection while they handled only this "
                "message; find out why before you retry it"
            )
            return rejected, event
        try:
            event = read(delivery.incoming, self._upcast, self._body_fields, messaging_system=self._messaging_system)
            processed = await self._call_handler(event, attempt=delivery.incoming.attempts + 1)
            return AckMessage(duplicate=not processed), event
        except BaseException as error:
            if ends_the_task(error):
                raise
            return decide(error, delivery.incoming, self._retry, self._rng), event

    async def _call_handler(self, event: ConsumedEvent, *, attempt: int) -> bool:
        def failed(error: NoTransactionError, pause: float) -> None:
            about = {"consumer": self.name, "event_id": event.event_id, "event_type": event.event_type}
            self._announce(HandlingFailed(**about, attempt=attempt, error=reason_of(error), delay=pause, counted=False))

        return await handle_with_transaction(
            self._dispatcher, event, failed=failed, stopping=self._stopping, clock=self._clock, rng=self._rng
        )

    # -- in-process -----------------------------------------------------------------------------------------------

    @property
    def event_type(self) -> tuple[str, ...]:
        """The event types of all handlers, for `Handlers.add`."""
        return self._dispatcher.event_types

    async def handle(self, event: Any, context: Any) -> None:
        """Process an event of a relay; `Handlers` calls it. The relay retries and dead-letters.

        Raises UnavailableError if no transaction could be opened, and whatever the handler raises.
        """
        try:
            await self._handle_in_process(event, context)
        except UnavailableError:
            raise
        except (Exception, SystemExit) as error:
            self._statistics.count_raised(error)
            await self._statistics.write_if_due()
            raise
        await self._statistics.write_if_due()

    async def aclose(self) -> None:
        """Write the statistics of in-process events; `Handlers.aclose` calls it. The consumer can be used further."""
        await self._statistics.write(within=FOREGROUND_TIMEOUT)

    async def _handle_in_process(self, event: Any, context: Any) -> None:
        consumed = read_received(event, context, self._upcast)
        began = self._clock.monotonic()
        about = {"consumer": self.name, "event_id": consumed.event_id, "event_type": consumed.event_type}
        try:
            first = await self._dispatcher.handle(consumed)
        except NoTransactionError as error:
            raise UnavailableError(str(error)) from error
        took = self._clock.monotonic() - began
        self._announce(
            EventProcessed(**about, attempt=consumed.attempt, seconds=took) if first else DuplicateSkipped(**about)
        )

    def _announce(self, observation: ConsumerObservation) -> None:
        self._statistics.count(observation)
        for observer in self._observers:
            with suppress(Exception):  # an observer that raises must not stop the consumer
                observer(observation)
