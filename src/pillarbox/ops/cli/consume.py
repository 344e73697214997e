"""`pillarbox consume`: run a consumer of the application until told to stop."""

from __future__ import annotations

import asyncio
import logging
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import click

from pillarbox.ops.cli.context import LOG_FORMAT, current_invocation, quiet_drivers
from pillarbox.ops.cli.signals import stop_on_signals

if TYPE_CHECKING:
    from pillarbox.inbox import Consumer


def _listened(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    from pillarbox.ops.settings.kinds import Listen

    try:
        return None if value is None else Listen().read(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.argument("path", metavar="MODULE:OBJECT")
@click.option(
    "--listen", metavar="HOST:PORT", callback=_listened, help="Serve metrics and health there; default: nowhere."
)
def consume(path: str, listen: str | None) -> None:
    """Run a consumer of yours until told to stop, by SIGTERM or SIGINT.

    OBJECT is the Consumer; its module is looked for where the command runs, too. The first signal drains: nothing more
    is received, and what is in hand is finished. A second one quits at once; what was in hand then comes again. Run as
    many processes as you like: they share the queue.

    \b
    Example:
      pillarbox consume shop.billing:consumer
      pillarbox consume shop.billing:consumer --listen 127.0.0.1:9465
    """
    from pillarbox.inbox import Consumer
    from pillarbox.ops.importing import import_object
    from pillarbox.telemetry.consumer_logs import ConsumerLog

    _log_to_stderr()
    consumer = import_object(path, Consumer)
    consumer.observe(ConsumerLog())
    asyncio.run(_run(consumer, listen))


async def _run(consumer: Consumer, listen: str | None) -> None:
    from pillarbox.ops.listeners import open_consumer_monitor, trace_consumer

    trace_consumer(consumer)
    async with AsyncExitStack() as opened:
        if listen is not None:
            monitor = open_consumer_monitor(consumer, listen)
            await opened.enter_async_context(monitor.shows())
            click.echo(f"consumer {consumer.name}: metrics and health on http://{monitor.address}")
        stop_on_signals(consumer.stop)
        await consumer.run()


def _log_to_stderr() -> None:
    if not current_invocation().verbose:
        logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=LOG_FORMAT)
    quiet_drivers()
