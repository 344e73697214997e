"""`pillarbox relay`: carry events until told to stop."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, aclosing
from typing import TYPE_CHECKING

import click

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.cli.context import LOG_FORMAT, current_invocation, current_settings, quiet_drivers
from pillarbox.ops.cli.output import as_json
from pillarbox.ops.cli.signals import stop_on_signals

if TYPE_CHECKING:
    from pillarbox.ops.settings import Settings


@click.command()
@click.option("--until-empty", is_flag=True, help="Stop once nothing can be sent now, for cron and tests.")
@click.option("--name", metavar="LABEL", default="", help="What people see this relay called; default: relay.name.")
@as_json
def relay(until_empty: bool, name: str, as_json: bool) -> None:
    """Carry events from the store to their destinations until SIGTERM or SIGINT.

    The way out is named by [transports] in the settings file or by PILLARBOX_TRANSPORT. The first signal drains, a
    second one quits at once.

    \b
    Examples:
      PILLARBOX_TRANSPORT=amqp://app@127.0.0.1:5672/%2F pillarbox relay
      PILLARBOX_TRANSPORT=handlers:shop.events:handlers pillarbox relay --until-empty
      pillarbox --config shop.toml --set relay.batch_size=100 relay
    """
    settings = current_settings()
    if not settings.relay.enabled:
        _tell(f"relay: switched off by {settings.called('relay', 'enabled')}", {"enabled": False}, as_json)
        return
    _arm(settings.failpoint)
    _log_to_stderr(settings)
    asyncio.run(_run(settings, name=name or settings.relay.name, until_empty=until_empty, as_json=as_json))


async def _run(settings: Settings, *, name: str, until_empty: bool, as_json: bool) -> None:
    from pillarbox.ops.listeners import open_relay_monitor, relay_tracing
    from pillarbox.ops.wiring import make_relay, open_store, open_transports
    from pillarbox.telemetry.logs import LogListener

    async with AsyncExitStack() as opened:
        monitor = open_relay_monitor(settings)
        if monitor is not None:
            opened.callback(monitor.close)
        store = await opened.enter_async_context(aclosing(open_store(settings.store, ledger=settings.relay.ledger)))
        transports = open_transports(settings)
        for transport in transports.values():
            opened.push_async_callback(transport.aclose)
        observers = [LogListener(), *relay_tracing(), *([monitor.metrics] if monitor else ())]
        carrier = make_relay(
            settings, store=store, transports=transports, name=name, observers=observers, on_stall=_quit
        )
        await store.schema.check()
        if monitor is not None:
            await opened.enter_async_context(monitor.shows(carrier, store))
        stop_on_signals(carrier.stop)
        _tell_start(settings, carrier.id, name, monitor.address if monitor else None, as_json)
        if until_empty:
            # A sentence does not belong among the events, where the way out is standard output.
            left = await carrier.run_until_empty()
            _tell(_what_is_left(left), {"relay": carrier.id, "left": left}, as_json, err=not as_json)
        else:
            await carrier.run()


def _tell_start(settings: Settings, relay: str, name: str, listens: str | None, as_json: bool) -> None:
    from pillarbox.ops.wiring import describe_routing

    routing, notes = describe_routing(settings), settings.notes
    facts = {"relay": relay, "name": name, "routing": routing, "notes": list(notes), "listen": listens}
    shown = [f"metrics and health on http://{listens}"] if listens else []
    _tell("; ".join([f"relay {name or relay}: {routing}", *shown, *notes]), facts, as_json)


def _tell(line: str, facts: Mapping[str, object], as_json: bool, *, err: bool = False) -> None:
    click.echo(json.dumps(facts, ensure_ascii=False) if as_json else line, err=err)


def _what_is_left(waiting: int) -> str:
    if not waiting:
        return "nothing is left"
    return f"{waiting} left that cannot be sent now: `pillarbox status` and `pillarbox events list` tell why"


def _quit(reason: str) -> None:
    """The event loop is wedged and its lanes are given away: whoever supervises this process starts a new one."""
    click.echo(f"pillarbox: the relay stopped by itself: {reason}", err=True)
    os._exit(1)


def _arm(failpoint: str) -> None:
    if failpoint:
        from pillarbox.core import failpoints
        from pillarbox.ops.settings.sources import FAILPOINT

        point, _, count = failpoint.partition(":")
        if not (count or "1").isdecimal():
            raise ConfigurationError(f"{FAILPOINT} is {failpoint!r}: write name:count")
        failpoints.arm(point, int(count or "1"))


def _log_to_stderr(settings: Settings) -> None:
    if current_invocation().verbose:
        return
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=LOG_FORMAT)
    quiet_drivers()
    if settings.relay.preset == "high-volume":
        # A line costs 15 µs: for every event, that is a good part of the work.
        logging.getLogger("pillarbox.relay.events").setLevel(logging.WARNING)
