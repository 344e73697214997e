"""`python -m apps.notifications COMMAND`: the processes, and commands that add a recipient or record an event."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from socket import socket

import click
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from apps.notifications import database, settings, webhooks
from apps.notifications.domain import Audience, Channel
from apps.notifications.listeners import LISTENERS, NotificationListener
from apps.notifications.metrics import ListenerMetrics
from apps.notifications.monitoring import backlog_health
from apps.notifications.orchestration.recipients import NO_RECIPIENTS, count_recipients
from apps.notifications.topology import relay_settings, source_of
from apps.notifications.webhooks import WebhookReceiver, is_webhook
from apps.runtime import tracing
from apps.runtime.consuming import ConsumerHealth
from apps.runtime.port import PortError, open_port, serving
from apps.runtime.stores import Store
from pillarbox import ConfigurationError, PillarboxError
from pillarbox.telemetry.log_lines import LogOptions
from pillarbox.telemetry.prometheus import ConsumerMetrics

logger = logging.getLogger("notifications")

RELAY_PORT, LISTENERS_PORT, DELIVERY_PORT = "127.0.0.1:9464", "127.0.0.1:9465", "127.0.0.1:9466"
"""Addresses of metrics and health unless NOTIFICATIONS_METRICS is set; `serve` has both on the port of the API."""


@click.group()
@click.option("--verbose", is_flag=True, help="Also log routine steps, such as each event.")
def commands(verbose: bool) -> None:
    """Notifications for four audiences. PILLARBOX_STORE names the database, PILLARBOX_TRANSPORT the broker."""
    LogOptions(events=verbose).apply()
    logging.getLogger("notifications").setLevel(logging.DEBUG if verbose else logging.INFO)
    # The listener logs an outage itself.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
    # httpx would log every URL it calls, and the URL of a gateway may contain a secret.
    logging.getLogger("httpx").setLevel(logging.WARNING)


@commands.command()
def migrate() -> None:
    """Create or upgrade the tables."""
    database.migrate(settings.database_url())


@commands.command()
@click.argument("audiences", nargs=-1, type=click.Choice(list(Audience), case_sensitive=False), metavar="[AUDIENCE]…")
@click.option(
    "--prefetch", default=10, show_default=True, type=click.IntRange(1), help="Messages in flight per audience."
)
def listen(audiences: Sequence[str], prefetch: int) -> None:
    """Turn the messages for these audiences, or for all, into notifications.

    SIGTERM and Ctrl-C drain: the process stops receiving and finishes the messages in flight.
    """
    _trace("notifications-listener")
    chosen = list(dict.fromkeys(Audience(audience.upper()) for audience in audiences)) or list(Audience)
    broker = settings.broker_url()
    engine = database.open_engine(settings.database_url(), pool_size=prefetch * len(chosen))
    try:
        port = _port(LISTENERS_PORT)
        receiver = WebhookReceiver(broker, prefetch=prefetch) if is_webhook(broker) else None
        _warn_without_recipients(engine)
        store = database.open_store(settings.database_url())
        consumed, health = ConsumerMetrics(), ConsumerHealth(store)
        metrics = ListenerMetrics(consumed.registry)
        listeners = [
            LISTENERS[audience](
                engine,
                source=receiver.source_of(audience) if receiver else source_of(audience, broker, prefetch=prefetch),
                workers=prefetch,
                metrics=metrics,
            )
            for audience in chosen
        ]
        for listener in listeners:
            listener.consumer.observe(consumed)
            listener.consumer.observe(health)
        asyncio.run(_listen(listeners, store, serving(port, consumed.registry, health.check), receiver))
    finally:
        engine.dispose()


async def _listen(
    listeners: Sequence[NotificationListener],
    store: Store,
    pages: contextlib.AbstractAsyncContextManager[None],
    receiver: WebhookReceiver | None,
) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop, listeners)
    received = receiver.serving() if receiver else contextlib.nullcontext()
    async with contextlib.aclosing(store), pages, received, asyncio.TaskGroup() as group:
        for listener in listeners:
            group.create_task(listener.consumer.run())


def _warn_without_recipients(engine: Engine) -> None:
    """Warn about an empty directory: otherwise a new system would silently drop every event."""
    try:
        with engine.begin() as connection:
            if not count_recipients(connection):
                logger.warning("%s", NO_RECIPIENTS)
    except SQLAlchemyError as error:
        logger.warning("cannot count recipients yet: %s", type(error).__name__)


def _stop(listeners: Sequence[NotificationListener]) -> None:
    for listener in listeners:
        listener.consumer.stop()


@commands.command()
def deliver() -> None:
    """Deliver notifications to their users; SIGTERM and Ctrl-C drain.

    NOTIFICATIONS_SMTP, NOTIFICATIONS_FROM, NOTIFICATIONS_PUSH_URL and NOTIFICATIONS_SMS_URL configure the channels.
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
    """Serve the HTTP API. It trusts the header X-User-Id: run it behind a gateway that sets it."""
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
    """Publish events to the queues of their audiences; SIGTERM and Ctrl-C drain.

    It is `pillarbox relay` with apps/notifications/pillarbox.toml, or any-broker.toml if the broker is not RabbitMQ.
    NOTIFICATION_OUTBOX_POLL_INTERVAL, _BATCH_SIZE and _INITIAL_DELAY override that file.
    """
    from apps.runtime.relaying import run_relay

    _trace("notifications-relay")
    store, transport = settings.database_url(), settings.broker_url()
    run_relay(relay_settings(transport), store=store, transport=transport, settings=relay_variables())


def relay_variables() -> dict[str, str]:
    """The variables of `pillarbox relay` in this environment."""
    from apps.runtime.relaying import listening

    given = settings.producer(os.environ).as_relay_settings | webhooks.relay_variables(settings.optional_broker_url())
    return given | listening(_port(RELAY_PORT))


@commands.command("add-recipient")
@click.argument("user_id", type=click.IntRange(1, 2**63 - 1))
@click.argument("name")
@click.option(
    "--audience", required=True, type=click.Choice(list(Audience), case_sensitive=False), help="The audience."
)
@click.option(
    "--aggregate-id",
    required=True,
    type=click.IntRange(0, 2**63 - 1),
    help="The id of the restaurant, customer or agency.",
)
@click.option(
    "--channel",
    "channels",
    required=True,
    multiple=True,
    type=click.Choice(list(Channel), case_sensitive=False),
    help="A channel that the user wants; repeat it for more.",
)
@click.option("--email", help="The address for EMAIL.")
@click.option("--phone", help="The number for SMS.")
@click.option("--push-token", help="The token for PUSH.")
@click.option("--time-zone", default="UTC", show_default=True, help="The time zone of the user.")
def add_recipient(
    user_id: int, name: str, audience: str, aggregate_id: int, channels: Sequence[str], **addresses: str | None
) -> None:
    """Add a user to an audience, or change one: these channels notify the user of the events of the aggregate."""
    from apps.notifications.directory import add

    engine = database.open_engine(settings.database_url())
    try:
        wanted = [Channel(channel.upper()) for channel in channels]
        target = Audience(audience.upper())
        add(
            engine, user_id=user_id, name=name, audience=target, aggregate_id=aggregate_id, channels=wanted, **addresses
        )
    finally:
        engine.dispose()
    click.echo(f"user {user_id} is notified of the events of {target} {aggregate_id} by {', '.join(wanted)}")


@commands.command()
@click.argument("event_type")
@click.argument("audience", type=click.Choice(list(Audience), case_sensitive=False))
@click.argument("aggregate_id", type=click.IntRange(0, 2**63 - 1))
@click.argument("payload", metavar="JSON")
def announce(event_type: str, audience: str, aggregate_id: int, payload: str) -> None:
    """Record an event for all users of an aggregate, as a business service does."""
    from apps.notifications.producers.announcing import announcement, outbox

    try:
        body = json.loads(payload)
    except ValueError as error:
        raise click.BadParameter(f"not valid JSON: {error}", param_hint="JSON") from None
    if not isinstance(body, dict):
        raise click.BadParameter("not a JSON object", param_hint="JSON")
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
