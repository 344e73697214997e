"""`pillarbox relay`: carry events until told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

import click

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.fetch import Bounds
from pillarbox.core.text import safe_json
from pillarbox.ops.cli.context import current_invocation, current_settings, quiet_drivers
from pillarbox.ops.cli.ending import ending_in_time
from pillarbox.ops.cli.output import as_json
from pillarbox.ops.cli.signals import stop_on_signals
from pillarbox.ops.moments import moment
from pillarbox.telemetry.log_lines import log_to_stderr

if TYPE_CHECKING:
    from pillarbox.ops.settings import Settings


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Which events to carry, by the time of their recording; None: no bound. Raises ConfigurationError."""

    after: datetime | None
    before: datetime | None
    called: str
    """What set it."""

    def __post_init__(self) -> None:
        Bounds(recorded_after=self.after, recorded_before=self.before)

    @property
    def is_set(self) -> bool:
        return self.after is not None or self.before is not None

    @classmethod
    def of(cls, settings: Settings, after: str | None, before: str | None) -> Self:
        """Options win over settings."""
        relay, names = settings.relay, []
        for option, name, configured in (
            (after, "recorded_after", relay.recorded_after),
            (before, "recorded_before", relay.recorded_before),
        ):
            if option is not None:
                names.append(f"--{name.replace('_', '-')}")
            elif configured is not None:
                names.append(settings.called("relay", name))
        after = relay.recorded_after if after is None else after
        before = relay.recorded_before if before is None else before
        return cls(_moment(after), _moment(before), " and ".join(names))


def _moment(text: str | None) -> datetime | None:
    return None if text is None else moment(text)


@click.command()
@click.option("--until-empty", is_flag=True, help="Stop once nothing can be sent now, for cron and tests.")
@click.option("--name", metavar="LABEL", default="", help="What people see this relay called; default: relay.name.")
@click.option(
    "--recorded-after",
    metavar="TIME",
    help="With --until-empty: only events recorded at this time (or age, such as 1h) or later.",
)
@click.option(
    "--recorded-before", metavar="TIME", help="With --until-empty: only events recorded before this time (or age)."
)
@click.option("--fail-fast", is_flag=True, help="Exit 1 if the store or a broker cannot be reached at the start.")
@as_json
def relay(
    until_empty: bool,
    name: str,
    recorded_after: str | None,
    recorded_before: str | None,
    fail_fast: bool,
    as_json: bool,
) -> None:
    """Carry events from the store to their destinations until SIGTERM or SIGINT.

    A relay that starts before its database or broker waits for it, says so in the log and on /readyz, and begins by
    itself; --fail-fast exits instead. It declares the configured topology as soon as the broker can be reached.

    The way out is named by [transports] in the settings file or by PILLARBOX_TRANSPORT. The first signal drains, a
    second one quits at once.

    \b
    Examples:
      PILLARBOX_TRANSPORT=amqp://app@127.0.0.1:5672/%2F pillarbox relay
      PILLARBOX_TRANSPORT=handlers:shop.events:handlers pillarbox relay --until-empty
      pillarbox --config shop.toml --set relay.batch_size=100 relay
      pillarbox relay --until-empty --recorded-after 2026-11-30T00:00:00Z --recorded-before 1h
    """
    settings = current_settings()
    times = TimeRange.of(settings, recorded_after, recorded_before)
    if times.is_set and not until_empty:
        raise click.UsageError(
            f"{times.called} selects events by their time, but a relay that keeps running carries every event: "
            "add --until-empty, or take the range out"
        )
    if not settings.relay.config.enabled:
        _tell(f"relay: switched off by {settings.called('relay', 'enabled')}", {"enabled": False}, as_json)
        return
    _arm(settings.failpoint)
    _log_to_stderr(settings)
    wanted = times if until_empty else None
    label = name or settings.relay.name
    asyncio.run(ending_in_time(_run(settings, name=label, times=wanted, fail_fast=fail_fast, as_json=as_json)))


async def _run(settings: Settings, *, name: str, times: TimeRange | None, fail_fast: bool, as_json: bool) -> None:
    from pillarbox.ops.listeners import open_relay_monitor, relay_tracing
    from pillarbox.ops.wiring import make_relay, open_store, open_transports
    from pillarbox.telemetry.logs import RelayLog

    async with AsyncExitStack() as opened:
        monitor = open_relay_monitor(settings)
        if monitor is not None:
            opened.callback(monitor.close)
        store = await opened.enter_async_context(aclosing(open_store(settings.store, ledger=settings.store.ledger)))
        transports = open_transports(settings)
        for transport in transports.values():
            opened.push_async_callback(transport.aclose)
        observers = [RelayLog(), *relay_tracing(), *([monitor.metrics] if monitor else ())]
        carrier = make_relay(
            settings,
            store=store,
            transports=transports,
            name=name,
            observers=observers,
            on_stall=_quit,
            fail_fast=fail_fast,
        )
        if monitor is not None:
            await opened.enter_async_context(monitor.shows(carrier, store))
        stop_on_signals(carrier.stop)
        _tell_start(settings, carrier.id, name, monitor.address if monitor else None, as_json)
        collect_rarely()
        if times is not None:
            # A sentence does not belong among the events, where the way out is standard output.
            left = await carrier.run_until_empty(recorded_after=times.after, recorded_before=times.before)
            _tell(_what_is_left(left), {"relay": carrier.id, "left": left}, as_json, err=not as_json)
        else:
            await carrier.run()


def collect_rarely() -> None:
    """Spend less CPU time on garbage collection: it takes a sixth of the relay's own, although its objects hardly form
    cycles and imported modules are never freed."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _tell_start(settings: Settings, relay: str, name: str, listens: str | None, as_json: bool) -> None:
    from pillarbox.ops.wiring import describe_routing

    routing, notes = describe_routing(settings), settings.notes
    facts = {"relay": relay, "name": name, "routing": routing, "notes": list(notes), "listen": listens}
    shown = [f"metrics and health on http://{listens}"] if listens else []
    _tell("; ".join([f"relay {name or relay}: {routing}", *shown, *notes]), facts, as_json)


def _tell(line: str, facts: Mapping[str, object], as_json: bool, *, err: bool = False) -> None:
    click.echo(safe_json(facts) if as_json else line, err=err)


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
        from pillarbox import failpoints
        from pillarbox.ops.settings.sources import FAILPOINT

        point, _, count = failpoint.partition(":")
        if not (count or "1").isdecimal():
            raise ConfigurationError(f"{FAILPOINT} is {failpoint!r}: write name:count")
        failpoints.arm(point, int(count or "1"))


def _log_to_stderr(settings: Settings) -> None:
    if current_invocation().verbose:
        return
    log_to_stderr(logging.INFO)
    quiet_drivers()
    if settings.relay.preset == "high-volume":
        # A line costs 15 µs: for every event, that is a good part of the work.
        logging.getLogger("pillarbox.relay.events").setLevel(logging.WARNING)
