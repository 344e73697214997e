"""`pillarbox relay`: carry events until told to stop.

The first SIGTERM or SIGINT drains; from then on the system's own answer to a signal is in force, so that a second one
ends the process at once, whatever its event loop is doing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from types import FrameType

import click

from pillarbox.core.errors import ConfigurationError, PillarboxError
from pillarbox.ops.settings import FAILPOINT, Settings
from pillarbox.ops.wiring import make_relay, open_store, open_transport
from pillarbox.relay import failpoints
from pillarbox.relay.relay import Relay
from pillarbox.telemetry.logs import LogListener

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class RelayFailed(PillarboxError):
    """A relay stopped by itself."""


@click.command()
@click.option("--until-empty", is_flag=True, help="Stop once nothing can be sent now, for cron and tests.")
@click.option("--name", metavar="LABEL", help="What people see this relay called; default: PILLARBOX_RELAY__NAME.")
def relay(until_empty: bool, name: str | None) -> None:
    """Carry events from the store to their destinations until SIGTERM or SIGINT.

    The way out is named by PILLARBOX_TRANSPORT. The first signal drains, a second one quits at once.

    \b
    Examples:
      PILLARBOX_TRANSPORT=amqp://app@127.0.0.1:5672/%2F pillarbox relay
      PILLARBOX_TRANSPORT=handlers:shop.events:handlers pillarbox relay --until-empty
    """
    settings = Settings.from_environment()
    if not settings.enabled:
        click.echo("relay: switched off by PILLARBOX_RELAY__ENABLED")
        return
    _arm(settings.failpoint)
    _log_to_stderr()
    asyncio.run(_run(settings, name=settings.name if name is None else name, until_empty=until_empty))


async def _run(settings: Settings, *, name: str, until_empty: bool) -> None:
    transport, routing = open_transport(settings)
    store = open_store(settings.store)
    try:
        await store.schema.check()
        carrier = make_relay(settings, store, transport, name=name, observers=[LogListener()], on_stall=_quit)
        _stop_on_signals(carrier)
        click.echo(f"relay {name or carrier.id}: {routing}")
        await (carrier.run_until_empty() if until_empty else carrier.run())
    finally:
        await transport.aclose()
        await store.aclose()
    if carrier.failure is not None:
        raise RelayFailed(_stopped_by_itself(carrier.failure))


def _stop_on_signals(carrier: Relay) -> None:
    loop = asyncio.get_running_loop()

    def stop(_number: int, _frame: FrameType | None) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        loop.call_soon_threadsafe(carrier.stop)

    for number in SIGNALS:
        signal.signal(number, stop)


def _quit(reason: str) -> None:
    """The event loop is wedged and its lanes are given away: whoever supervises this process starts a new one."""
    click.echo(f"pillarbox: {_stopped_by_itself(reason)}", err=True)
    os._exit(1)


def _stopped_by_itself(reason: str) -> str:
    return f"the relay stopped by itself: {reason}"


def _arm(failpoint: str) -> None:
    if failpoint:
        point, _, count = failpoint.partition(":")
        if not (count or "1").isdecimal():
            raise ConfigurationError(f"{FAILPOINT} is {failpoint!r}: write name:count")
        failpoints.arm(point, int(count or "1"))


def _log_to_stderr() -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # What a driver has to say becomes a verdict, told once and in our words.
    logging.getLogger("pika").setLevel(logging.CRITICAL)
