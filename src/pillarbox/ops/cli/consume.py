"""`pillarbox consume`: run a consumer of the application until told to stop."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import click

from pillarbox.ops.cli.context import log_to_stderr
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
    "--listen", metavar="HOST:PORT", callback=_listened, help="Serve metrics and health at this address; default: none."
)
@click.option("--fail-fast", is_flag=True, help="Exit with 1 if the broker is unavailable at the start.")
def consume(path: str, listen: str | None, fail_fast: bool) -> None:
    """Run one of your consumers until SIGTERM or SIGINT.

    OBJECT is a Consumer; its module is also searched in the current folder. If the broker is unavailable at the start,
    the consumer waits and logs it; with --fail-fast it exits. It declares its queues as soon as it is connected.

    On the first signal the consumer drains: it stops receiving and finishes what is in flight. A second signal ends the
    process at once; what was in flight is redelivered. Several processes share the queue.

    \b
    Example:
      pillarbox consume shop.billing:consumer
      pillarbox consume shop.billing:consumer --listen 127.0.0.1:9465
    """
    from pillarbox.inbox import Consumer
    from pillarbox.ops.importing import import_object
    from pillarbox.telemetry.consumer_logs import ConsumerLog

    log_to_stderr()
    consumer = import_object(path, Consumer)
    consumer.observe(ConsumerLog())
    asyncio.run(_run(consumer, listen, fail_fast=fail_fast))


async def _run(consumer: Consumer, listen: str | None, *, fail_fast: bool) -> None:
    from pillarbox.ops.telemetry import open_consumer_monitor, trace_consumer

    trace_consumer(consumer)
    async with AsyncExitStack() as opened:
        if listen is not None:
            monitor = open_consumer_monitor(consumer, listen)
            await opened.enter_async_context(monitor.serve())
            click.echo(f"consumer {consumer.name}: metrics and health on http://{monitor.address}")
        stop_on_signals(consumer.stop)
        await consumer.run(fail_fast=fail_fast)
