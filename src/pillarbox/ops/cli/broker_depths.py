"""The depth of dead-letter queues on a broker, for `pillarbox status`.

A broker that does not respond within a timeout is reported in the line of its queue; the rest of the output is not
affected. Without a broker among the transports no driver is imported.
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

TIMEOUT = 3.0
"""Seconds that a broker has to respond."""


def known_dead_queues(destinations: Collection[str], *, required: bool) -> list[DeadQueue]:
    """Return the dead-letter queues of the settings and of destinations that relays have sent to.

    Raises ConfigurationError if at least one is required and there is none.
    """
    from pillarbox.ops.broker_queues import known_queues

    queues = known_queues(current_settings(), destinations=destinations)
    if required and not queues:
        raise ConfigurationError(
            "--max-broker-dead: the settings name no queue with dead letters; add one, for RabbitMQ to "
            "[[transports.NAME.queues]]"
        )
    return queues


def read_depths(queues: Sequence[DeadQueue]) -> list[Depth]:
    """Return the depth of each queue. A queue that the settings do not name is left out if it does not exist."""
    from pillarbox.ops.broker_queues import depths

    if not queues:
        return []
    quiet_drivers()
    found = asyncio.run(depths(current_settings(), queues, within=TIMEOUT))
    return [depth for depth in found if depth.queue.named or depth.dead_letters is not None or depth.error]


def too_many(depths: Sequence[Depth], most: int | None) -> Iterator[str]:
    """Yield a message for each queue with more than `most` dead letters."""
    for depth in depths:
        if most is not None and (count := depth.dead_letters or 0) > most:
            yield f"{depth.queue.name} has {plural(count, 'dead letter')}, more than {most:,}"


def unknown(depths: Sequence[Depth]) -> Iterator[str]:
    """Yield a message for each queue whose depth is unknown."""
    return (f"the depth of {depth.queue.name} is unknown: {depth.error}" for depth in depths if depth.error)


def as_object(depths: Sequence[Depth]) -> dict[str, object]:
    """Return the depths as a JSON object."""
    listed = [
        {
            "transport": depth.queue.transport,
            "queue": depth.queue.name,
            "depth": depth.dead_letters,
            "error": depth.error,
        }
        for depth in depths
    ]
    return {"broker_dead_letters": listed}


def print_depths(depths: Sequence[Depth]) -> None:
    """Print the depths as a table."""
    if depths:
        print_table(
            ["dead-letter queue", "transport", "depth", "error"],
            [[d.queue.name, d.queue.transport, d.dead_letters, _trouble(d)] for d in depths],
        )


def _trouble(depth: Depth) -> str:
    return depth.error or ("" if depth.dead_letters is not None else "the queue does not exist yet")
