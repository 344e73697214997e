"""What a consumer does while its broker or its database is unavailable: it pauses and retries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from pillarbox.core.clock import Clock, RandomSource
from pillarbox.core.errors import UnavailableError
from pillarbox.core.retry import Backoff
from pillarbox.core.source import Delivery, Source
from pillarbox.inbox.consumed_event import ConsumedEvent
from pillarbox.inbox.dispatch import Dispatcher, NoTransactionError

LONGEST_HOLD = 60.0
"""Seconds that an event stays in flight without a transaction; then the source delivers it again later. A broker closes
a channel whose messages are acknowledged too late."""


async def receive_all(
    source: Source,
    *,
    failed: Callable[[UnavailableError, float], None],
    restored: Callable[[float], None],
    clock: Clock,
    rng: RandomSource,
) -> AsyncIterator[Delivery]:
    """Yield every delivery, without end; pause and reconnect while the source is unavailable.

    failed: called with the error and the seconds of the next pause.
    restored: called with the seconds that the outage lasted.
    """
    backoff = Backoff(rng)
    failed_at: float | None = None
    while True:
        try:
            if failed_at is not None:
                # `receive` returns with the first message, which may be hours after the outage.
                await source.connect()
                restored(clock.monotonic() - failed_at)
                failed_at = None
            delivery = await source.receive()
        except UnavailableError as error:
            if failed_at is None:
                failed_at = clock.monotonic()
            pause = backoff.next()
            failed(error, pause)
            await clock.sleep(pause)
            continue
        backoff.reset()
        yield delivery


async def handle_with_transaction(
    dispatcher: Dispatcher,
    event: ConsumedEvent,
    *,
    failed: Callable[[NoTransactionError, float], None],
    stopping: asyncio.Event,
    clock: Clock,
    rng: RandomSource,
) -> bool:
    """`Dispatcher.handle`, retried within seconds while no transaction can be opened; the event stays in flight.

    Returning the event to its source would delay it longer with every retry, and the events after it would fail as
    well. A retry here is safe, because the handler was not called.

    failed: called once with the error and the seconds of the first pause.
    Raises NoTransactionError when `stopping` is set, or after `LONGEST_HOLD`.
    """
    backoff, until, reported = Backoff(rng), clock.monotonic() + LONGEST_HOLD, False
    while True:
        try:
            return await dispatcher.handle(event)
        except NoTransactionError as error:
            if stopping.is_set() or clock.monotonic() >= until:
                raise
            pause = backoff.next()
            if not reported:
                failed(error, pause)
            reported = True
        await clock.sleep(pause)
