"""What `pillarbox status` says of brokers: how many dead letters lie in their queues.

A broker that does not answer is told in its line, within a bounded time, and keeps nothing else from being told.
Without RabbitMQ among the transports nothing is asked, and nothing is imported that could.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.text import plural
from pillarbox.ops.cli.context import current_settings, quiet_drivers
from pillarbox.ops.cli.output import print_table

if TYPE_CHECKING:
    from pillarbox.ops.broker_queues import DeadQueue, Depth

GLANCE = 3.0
"""Seconds that a broker has for its answer."""


def queues_to_ask(met: Collection[str], *, required: bool) -> list[DeadQueue]:
    """Those that the settings know of, and those of destinations that relays have met. Raises ConfigurationError if
    there has to be one and is none."""
    from pillarbox.ops.broker_queues import known_queues

    queues = known_queues(current_settings(), met=met)
    if required and not queues:
        raise ConfigurationError(
            "--max-broker-dead: the settings name no queue of RabbitMQ, so there is none to count; list it in "
            "[[transports.NAME.queues]]"
        )
    return queues


def ask(queues: Sequence[DeadQueue]) -> list[Depth]:
    """How deep they are; a queue that nobody named is left out as long as it does not exist."""
    from pillarbox.ops.broker_queues import depths

    if not queues:
        return []
    quiet_drivers()
    found = asyncio.run(depths(current_settings(), queues, within=GLANCE))
    return [depth for depth in found if depth.queue.named or depth.letters is not None or depth.error]


def too_many(depths: Sequence[Depth], most: int | None) -> Iterator[str]:
    """A sentence for each queue that has more than that."""
    for depth in depths:
        if most is not None and (letters := depth.letters or 0) > most:
            lie = plural(letters, "dead letter lies", "dead letters lie")
            yield f"{lie} in {depth.queue.name}, more than {most:,}"


def unknown(depths: Sequence[Depth]) -> Iterator[str]:
    """A sentence for each queue whose depth nobody told."""
    return (f"how many lie in {depth.queue.name} is not known: {depth.error}" for depth in depths if depth.error)


def depth_figures(depths: Sequence[Depth]) -> dict[str, object]:
    """For scripts; an empty list where nothing was asked."""
    listed = [
        {
            "transport": depth.queue.transport,
            "queue": depth.queue.name,
            "depth": depth.letters,
            "error": depth.error,
        }
        for depth in depths
    ]
    return {"broker_dead": listed}


def print_depths(depths: Sequence[Depth]) -> None:
    """For people."""
    if depths:
        print_table(
            ["dead-letter queue", "transport", "letters", "error"],
            [[d.queue.name, d.queue.transport, d.letters, _trouble(d)] for d in depths],
        )


def _trouble(depth: Depth) -> str:
    return depth.error or ("" if depth.letters is not None else "there is no such queue yet")
