"""`python -m apps.notifications COMMAND`: the processes of the application. The relay's is `pillarbox relay`."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence

import click

from apps.notifications import database, settings
from apps.notifications.listeners import LISTENERS, NotificationListener
from apps.notifications.topology import source_of
from apps.notifications.words import Audience
from pillarbox import PillarboxError

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


@click.group()
@click.option("--verbose", is_flag=True, help="Also tell what is usual, such as each event.")
def commands(verbose: bool) -> None:
    """Notifications for four audiences. PILLARBOX_STORE names the database, PILLARBOX_TRANSPORT the broker."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=LOG_FORMAT)
    logging.getLogger("notifications").setLevel(logging.DEBUG if verbose else logging.INFO)
    # What the driver has to say of an outage becomes a line of the listener's.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    # It would tell every address that it calls, and a gateway's may hold a secret.
    logging.getLogger("httpx").setLevel(logging.WARNING)


@commands.command()
def migrate() -> None:
    """Make the tables, or bring them up to date."""
    database.migrate(settings.database_url())


@commands.command()
@click.argument("audiences", nargs=-1, type=click.Choice(list(Audience), case_sensitive=False), metavar="[AUDIENCE]…")
@click.option(
    "--prefetch", default=10, show_default=True, type=click.IntRange(1), help="In hand at once, per audience."
)
def listen(audiences: Sequence[str], prefetch: int) -> None:
    """Turn the messages for these audiences, or for all, into notifications until told to stop.

    SIGTERM and Ctrl-C drain: nothing more is received, and what is in hand is finished.
    """
    chosen = list(dict.fromkeys(Audience(audience.upper()) for audience in audiences)) or list(Audience)
    broker = settings.broker_url()
    engine = database.open_engine(settings.database_url(), pool_size=prefetch * len(chosen))
    try:
        listeners = [
            LISTENERS[audience](engine, source=source_of(audience, broker, prefetch=prefetch), workers=prefetch)
            for audience in chosen
        ]
        asyncio.run(_listen(listeners))
    finally:
        engine.dispose()


async def _listen(listeners: Sequence[NotificationListener]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, listeners)
    async with asyncio.TaskGroup() as group:
        for listener in listeners:
            group.create_task(listener.consumer.run())


def _stop(listeners: Sequence[NotificationListener]) -> None:
    for listener in listeners:
        listener.consumer.stop()


@commands.command()
def deliver() -> None:
    """Carry notifications to their users until told to stop; SIGTERM and Ctrl-C drain.

    NOTIFICATIONS_SMTP, NOTIFICATIONS_FROM, NOTIFICATIONS_PUSH_URL and NOTIFICATIONS_SMS_URL say by which ways.
    """
    asyncio.run(_deliver(settings.database_url()))


async def _deliver(url: str) -> None:
    from apps.notifications.delivery.relay import delivering
    from apps.notifications.delivery.settings import DeliverySettings

    async with delivering(url, DeliverySettings.from_environment(os.environ)) as relay:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, relay.stop)
        await relay.run()


@commands.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
def serve(host: str, port: int) -> None:
    """Answer users over HTTP until told to stop. It believes X-User-Id: put it behind a gateway that sets it."""
    from apps.notifications.api.app import create_app
    from apps.notifications.api.serving import run

    engine = database.open_engine(settings.database_url())
    try:
        run(create_app(engine), host=host, port=port)
    finally:
        engine.dispose()


def main() -> None:
    failures: list[BaseException] = []
    try:
        commands()
    except* PillarboxError as failed:
        failures.extend(failed.exceptions)
    for failure in failures:
        click.echo(f"error: {failure}", err=True)
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
