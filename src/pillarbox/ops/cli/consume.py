"""`pillarbox consume`: run a consumer of the application until told to stop."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING

import click

from pillarbox.ops.cli.context import LOG_FORMAT, current_invocation
from pillarbox.ops.cli.signals import stop_on_signals

if TYPE_CHECKING:
    from pillarbox.inbox import Consumer


@click.command()
@click.argument("path", metavar="MODULE:OBJECT")
def consume(path: str) -> None:
    """Run a consumer of yours until told to stop, by SIGTERM or SIGINT.

    OBJECT is the Consumer; its module is looked for where the command runs, too. The first signal drains: nothing more
    is received, and what is in hand is finished. A second one quits at once; what was in hand then comes again. Run as
    many processes as you like: they share the queue.

    \b
    Example:
      pillarbox consume shop.billing:consumer
    """
    from pillarbox.inbox import Consumer
    from pillarbox.ops.importing import import_object
    from pillarbox.telemetry.consumer_logs import ConsumerLog

    _log_to_stderr()
    consumer = import_object(path, Consumer)
    consumer.observe(ConsumerLog())
    asyncio.run(_run(consumer))


async def _run(consumer: Consumer) -> None:
    stop_on_signals(consumer.stop)
    await consumer.run()


def _log_to_stderr() -> None:
    if not current_invocation().verbose:
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=LOG_FORMAT)
        # What a driver has to say becomes a line of ours, told once.
        logging.getLogger("pika").setLevel(logging.CRITICAL)
