"""`python -m apps.notifications COMMAND`: the processes of the application, and a user and an event to try it with."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from socket import socket

import click
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from apps.common import tracing
from apps.common.consuming import ConsumerHealth
from apps.common.port import PortError, open_port, serving
from apps.notifications import database, settings
from apps.notifications.listeners import LISTENERS, NotificationListener
from apps.notifications.metrics import ListenerMetrics
from apps.notifications.monitoring import backlog_health
from apps.notifications.orchestration.recipients import NO_RECIPIENTS, count_recipients
from apps.notifications.topology import source_of
from apps.notifications.words import Audience, Channel
from pillarbox import ConfigurationError, PillarboxError
from pillarbox.telemetry.log_lines import log_to_stderr
from pillarbox.telemetry.prometheus import ConsumerMetrics

logger = logging.getLogger("notifications")

CONFIG = Path(__file__).with_name("pillarbox.toml")
RELAY_PORT, LISTENERS_PORT, DELIVERY_PORT = "127.0.0.1:9464", "127.0.0.1:9465", "127.0.0.1:9466"
"""Metrics and health of each process, unless NOTIFICATIONS_METRICS says otherwise; `serve` has them on its own port."""


@click.group()
@click.option("--verbose", is_flag=True, help="Also tell what is usual, such as each event.")
def commands(verbose: bool) -> None:
    """Notifications for four audiences. PILLARBOX_STORE names the database, PILLARBOX_TRANSPORT the broker."""
    log_to_stderr(logging.INFO)
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
    _trace("notifications-listener")
    chosen = list(dict.fromkeys(Audience(audience.upper()) for audience in audiences)) or list(Audience)
    broker = settings.broker_url()
    engine = database.open_engine(settings.database_url(), pool_size=prefetch * len(chosen))
    try:
        port = _port(LISTENERS_PORT)
        _warn_without_recipients(engine)
        store = database.open_store(settings.database_url())
        consumed, health = ConsumerMetrics(), ConsumerHealth(store)
        metrics = ListenerMetrics(consumed.registry)
        listeners = [
            LISTENERS[audience](
                engine, source=source_of(audience, broker, prefetch=prefetch), workers=prefetch, metrics=metrics
            )
            for audience in chosen
        ]
        for listener in listeners:
            listener.consumer.observe(consumed)
            listener.consumer.observe(health)
        asyncio.run(_listen(listeners, store, serving(port, consumed.registry, health.look)))
    finally:
        engine.dispose()


async def _listen(
    listeners: Sequence[NotificationListener],
    store: database.Store,
    pages: contextlib.AbstractAsyncContextManager[None],
) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, listeners)
    async with contextlib.aclosing(store), pages, asyncio.TaskGroup() as group:
        for listener in listeners:
            group.create_task(listener.consumer.run())


def _warn_without_recipients(engine: Engine) -> None:
    """A new system would otherwise notify nobody, and say nothing about it."""
    try:
        with engine.begin() as connection:
            if not count_recipients(connection):
                logger.warning("%s", NO_RECIPIENTS)
    except SQLAlchemyError as error:
        logger.warning("the database cannot be asked for recipients yet: %s", type(error).__name__)


def _stop(listeners: Sequence[NotificationListener]) -> None:
    for listener in listeners:
        listener.consumer.stop()


@commands.command()
def deliver() -> None:
    """Carry notifications to their users until told to stop; SIGTERM and Ctrl-C drain.

    NOTIFICATIONS_SMTP, NOTIFICATIONS_FROM, NOTIFICATIONS_PUSH_URL and NOTIFICATIONS_SMS_URL say by which ways.
    """
    _trace("notifications-delivery")
    asyncio.run(_deliver(settings.database_url()))


async def _deliver(url: str) -> None:
    from apps.notifications.delivery.relay import delivering
    from apps.notifications.delivery.settings import DeliverySettings
    from apps.notifications.monitoring import Outboxes
    from pillarbox.telemetry.prometheus import RelayMetrics

    wanted = DeliverySettings.from_environment(os.environ)
    port, metrics = _port(DELIVERY_PORT), RelayMetrics()
    async with (
        contextlib.aclosing(Outboxes(url, registry=metrics.registry)) as outboxes,
        delivering(url, wanted, observers=[metrics]) as relay,
    ):
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, relay.stop)
        async with serving(port, metrics.registry, lambda: backlog_health(outboxes), before=outboxes.refresh):
            await relay.run()


@commands.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
def serve(host: str, port: int) -> None:
    """Answer users over HTTP until told to stop. It believes X-User-Id: put it behind a gateway that sets it."""
    from apps.notifications.api.app import create_app
    from apps.notifications.api.serving import run

    _trace("notifications-api")
    broker = settings.optional_broker_url()
    engine = database.open_engine(settings.database_url())
    try:
        run(create_app(engine, broker=broker), host=host, port=port)
    finally:
        engine.dispose()


@commands.command()
def relay() -> None:
    """Publish events to the queues of their audiences until told to stop; SIGTERM and Ctrl-C drain.

    It is `pillarbox relay` with apps/notifications/pillarbox.toml. NOTIFICATION_OUTBOX_POLL_INTERVAL, _BATCH_SIZE and
    _INITIAL_DELAY override that file.
    """
    from apps.common.relaying import listening, run_relay

    _trace("notifications-relay")
    store, transport = settings.database_url(), settings.broker_url()
    given = settings.producer(os.environ).as_relay_settings | listening(_port(RELAY_PORT))
    run_relay(CONFIG, store=store, transport=transport, settings=given)


@commands.command("add-recipient")
@click.argument("user_id", type=click.IntRange(1, 2**63 - 1))
@click.argument("name")
@click.option("--audience", required=True, type=click.Choice(list(Audience), case_sensitive=False), help="Of which.")
@click.option("--aggregate-id", required=True, type=click.IntRange(0, 2**63 - 1), help="Of which restaurant, say.")
@click.option(
    "--channel",
    "channels",
    required=True,
    multiple=True,
    type=click.Choice(list(Channel), case_sensitive=False),
    help="By which channel; may be given several times.",
)
@click.option("--email", help="The address for EMAIL.")
@click.option("--phone", help="The number for SMS.")
@click.option("--push-token", help="The token for PUSH.")
@click.option("--time-zone", default="UTC", show_default=True, help="Of the user's clock.")
def add_recipient(
    user_id: int, name: str, audience: str, aggregate_id: int, channels: Sequence[str], **addresses: str | None
) -> None:
    """Add a user to an audience, or change one: who is told of the events of an aggregate, and by which channels."""
    from apps.notifications.directory import add

    engine = database.open_engine(settings.database_url())
    try:
        wanted = [Channel(channel.upper()) for channel in channels]
        place = Audience(audience.upper())
        add(engine, user_id=user_id, name=name, audience=place, aggregate_id=aggregate_id, channels=wanted, **addresses)
    finally:
        engine.dispose()
    click.echo(f"user {user_id} is told of the events of {place} {aggregate_id} by {', '.join(wanted)}")


@commands.command()
@click.argument("event_type")
@click.argument("audience", type=click.Choice(list(Audience), case_sensitive=False))
@click.argument("aggregate_id", type=click.IntRange(0, 2**63 - 1))
@click.argument("payload", metavar="JSON")
def announce(event_type: str, audience: str, aggregate_id: int, payload: str) -> None:
    """Record an event for everybody of an aggregate, as a business service does."""
    from apps.notifications.producers.announcing import announcement, outbox

    try:
        body = json.loads(payload)
    except ValueError as error:
        raise click.BadParameter(f"it is no JSON: {error}", param_hint="JSON") from None
    if not isinstance(body, dict):
        raise click.BadParameter("it is no JSON object", param_hint="JSON")
    _trace("notifications-producer")
    engine = database.open_engine(settings.database_url())
    try:
        with tracing.span(f"announce {event_type}"):
            event = announcement(event_type, body, audience=Audience(audience.upper()), aggregate_id=aggregate_id)
            [event_id] = outbox.record(engine, event)
    finally:
        engine.dispose()
    click.echo(f"recorded event {event_id}")


def _port(default: str) -> socket | None:
    try:
        return open_port(settings.METRICS, default)
    except PortError as error:
        raise ConfigurationError(str(error)) from None


def _trace(service: str) -> None:
    try:
        tracing.configure(service)
    except tracing.TracingError as error:
        raise ConfigurationError(str(error)) from None


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
