"""The dead-letter queues of the settings: their depth and their messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import groupby

from pillarbox.admin.broker_dead_letters import BrokerDeadLetter, BrokerDeadLetters, dead_letter_queue
from pillarbox.core.errors import ConfigurationError, RejectedError, UnavailableError
from pillarbox.ops.settings import Settings
from pillarbox.ops.wiring import open_broker_dead_letters, transport_queues

MAX_UNROUTED = 100
"""Queues that are read only because relays have sent to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadQueue:
    """A dead-letter queue on the broker of a transport."""

    transport: str
    name: str
    named: bool = True
    """The settings name it. Otherwise it is the default dead-letter queue of a queue that events go to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """The number of dead letters in a queue, or why it is unknown."""

    queue: DeadQueue
    dead_letters: int | None
    """None: the queue does not exist, or there is an error."""
    error: str | None = None


def known_queues(settings: Settings, *, destinations: Collection[str] = ()) -> list[DeadQueue]:
    """Return the dead-letter queues in the order of the settings, grouped by transport.

    destinations: those that relays have sent to. Without routes, each is a queue named after an event type.
    """
    unrouted = [] if settings.routes or settings.destinations else sorted(destinations)[:MAX_UNROUTED]
    return [queue for name in _brokers(settings) for queue in _queues_of(settings, name, unrouted)]


def chosen_queues(settings: Settings, *, queue: str | None, transport: str | None) -> list[DeadQueue]:
    """Return the selected queues, at least one. Raises ConfigurationError."""
    brokers = _brokers(settings)
    if not brokers:
        raise ConfigurationError(
            "no transport with dead-letter queues is configured: set PILLARBOX_TRANSPORT=amqp://…, or add "
            "[transports.NAME] to the settings file"
        )
    if transport is not None and transport not in brokers:
        raise ConfigurationError(
            f"--transport: {transport!r} is not a transport with dead-letter queues; use {' or '.join(brokers)}"
        )
    known = [one for one in known_queues(settings) if transport in (None, one.transport)]
    if queue is None:
        if not known:
            raise ConfigurationError("the settings name no queue: select one with --queue NAME")
        return known
    places = [one.transport for one in known if one.name == queue] or ([transport] if transport else brokers)
    if len(places) > 1:
        raise ConfigurationError(
            f"--queue {queue}: it may be on {' or '.join(places)}; select one with --transport NAME"
        )
    return [DeadQueue(transport=places[0], name=queue)]


async def depths(settings: Settings, queues: Sequence[DeadQueue], *, within: float | None = None) -> list[Depth]:
    """Return the depth of each queue. All brokers are queried concurrently, each with a timeout of `within` seconds; an
    error of a broker is part of the result."""
    groups = [list(group) for _, group in groupby(queues, key=lambda queue: queue.transport)]
    answers = await asyncio.gather(*(_depths_on(settings, group, within) for group in groups))
    return [depth for answer in answers for depth in answer]


async def existing(settings: Settings, queues: Sequence[DeadQueue]) -> dict[DeadQueue, int]:
    """Return the queues that exist, with their depth. Raises UnavailableError if a broker does not respond."""
    found = await depths(settings, queues)
    if error := next((depth.error for depth in found if depth.error), None):
        raise UnavailableError(error)
    return {depth.queue: depth.dead_letters for depth in found if depth.dead_letters is not None}


async def first_dead_letters(
    settings: Settings, queues: Mapping[DeadQueue, int], *, limit: int, bodies: bool
) -> list[BrokerDeadLetter]:
    """Return the first dead letters of each queue, up to `limit` in total, without removing them.

    Raises RejectedError, UnavailableError.
    """
    found: list[BrokerDeadLetter] = []
    for queue, depth in queues.items():
        if most := min(depth, limit - len(found)):
            async with (
                opened(settings, queue) as dead_letters,
                dead_letters.receive(queue.name, limit=most, prefetch=most) as messages,
            ):
                async for received in messages:
                    found.append(received.dead_letter if bodies else replace(received.dead_letter, body=b""))
    return found


@asynccontextmanager
async def opened(
    settings: Settings, queue: DeadQueue, *, within: float | None = None
) -> AsyncIterator[BrokerDeadLetters]:
    """Connect to the broker of a queue, and close the connection afterwards. Raises ConfigurationError,
    UnavailableError."""
    dead_letters = open_broker_dead_letters(settings, queue.transport, timeout=within)
    try:
        yield dead_letters
    finally:
        await dead_letters.aclose()


async def _depths_on(settings: Settings, queues: Sequence[DeadQueue], within: float | None) -> list[Depth]:
    found: list[Depth] = []
    problem = ""
    try:
        async with asyncio.timeout(within), opened(settings, queues[0], within=within) as dead_letters:
            for queue in queues:
                found.append(await _depth_of(dead_letters, queue))
    except TimeoutError:
        problem = f"no answer within {within:g} s"
    except (ConfigurationError, UnavailableError) as error:
        problem = str(error)
    return found + [Depth(queue=queue, dead_letters=None, error=problem) for queue in queues[len(found) :]]


async def _depth_of(dead_letters: BrokerDeadLetters, queue: DeadQueue) -> Depth:
    try:
        return Depth(queue=queue, dead_letters=await dead_letters.depth(queue.name))
    except RejectedError as error:
        return Depth(queue=queue, dead_letters=None, error=str(error))


def _brokers(settings: Settings) -> list[str]:
    return [name for name, given in settings.transports.items() if given.plugin.dead_letter_queues]


def _queues_of(settings: Settings, transport: str, unrouted: Iterable[str]) -> Iterator[DeadQueue]:
    queues = transport_queues(settings, transport)
    named = dict.fromkeys(name for name in queues.values() if name is not None)
    yield from (DeadQueue(transport=transport, name=name) for name in named)
    for work in dict.fromkeys([*queues, *unrouted]):
        guess = dead_letter_queue(work)
        if queues.get(work) is None and work not in named and guess not in named:
            yield DeadQueue(transport=transport, name=guess, named=False)
