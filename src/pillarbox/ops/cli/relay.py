"""`pillarbox relay`: run a relay until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Self

import click

from pillarbox.core.errors import ConfigurationError
from pillarbox.core.fetch import check_range
from pillarbox.core.text import safe_json
from pillarbox.ops.cli.context import current_settings, log_to_stderr
from pillarbox.ops.cli.output import as_json
from pillarbox.ops.cli.process_exit import run_and_exit
from pillarbox.ops.cli.signals import stop_on_signals
from pillarbox.ops.cli.store_access import name_default_store
from pillarbox.ops.times import parse_time

if TYPE_CHECKING:
    from pillarbox.ops.settings import Settings


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The time of recording of the events to send; None: no bound. Raises ConfigurationError."""

    after: datetime | None
    before: datetime | None
    called: str
    """The options or settings that set the range, for error messages."""

    def __post_init__(self) -> None:
        check_range(self.after, self.before)

    @property
    def is_set(self) -> bool:
        return self.after is not None or self.before is not None

    @classmethod
    def of(cls, settings: Settings, after: str | None, before: str | None) -> Self:
        """Combine options and settings; options take precedence."""
        relay = settings.relay
        names: list[str] = []
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
        return cls(_parse_time(after), _parse_time(before), " and ".join(names))


def _parse_time(text: str | None) -> datetime | None:
    return None if text is None else parse_time(text)


@click.command()
@click.option("--until-empty", is_flag=True, help="Exit once nothing can be sent now, for cron and tests.")
@click.option("--name", metavar="LABEL", default="", help="Name of the relay in status and logs; default: relay.name.")
@click.option(
    "--recorded-after",
    metavar="TIME",
    help="With --until-empty: only events recorded since this time, or age such as 1h.",
)
@click.option(
    "--recorded-before", metavar="TIME", help="With --until-empty: only events recorded before this time, or age."
)
@click.option("--fail-fast", is_flag=True, help="Exit with 1 if the store or a broker is unavailable at the start.")
@as_json
def relay(
    until_empty: bool,
    name: str,
    recorded_after: str | None,
    recorded_before: str | None,
    fail_fast: bool,
    as_json: bool,
) -> None:
    """Run a relay, which sends events to their destinations, until SIGTERM or SIGINT.

    [transports] in the settings file or PILLARBOX_TRANSPORT configures where events go. If the database or a broker is
    unavailable at the start, the relay waits and reports it in the log and on /readyz; with --fail-fast it exits. It
    declares the configured topology as soon as it is connected.

    On the first signal the relay drains: it finishes what is in flight and releases its lanes. A second signal ends the
    process at once.

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
            f"{times.called} limits the events by time, which a continuously running relay does not support: "
            "add --until-empty, or remove the range"
        )
    if not settings.relay.config.enabled:
        _print(f"relay: disabled by {settings.called('relay', 'enabled')}", {"enabled": False}, as_json)
        return
    _arm(settings.failpoint)
    log_to_stderr()
    wanted = times if until_empty else None
    label = name or settings.relay.name
    asyncio.run(run_and_exit(_run(settings, name=label, times=wanted, fail_fast=fail_fast, as_json=as_json)))


async def _run(settings: Settings, *, name: str, times: TimeRange | None, fail_fast: bool, as_json: bool) -> None:
    from pillarbox.ops.telemetry import open_relay_monitor, relay_tracing
    from pillarbox.ops.wiring import make_relay, open_store, open_transports
    from pillarbox.telemetry.logs import RelayLog

    async with AsyncExitStack() as opened:
        monitor = open_relay_monitor(settings)
        if monitor is not None:
            opened.callback(monitor.close)
        store = await opened.enter_async_context(aclosing(open_store(settings.store, ledger=settings.store.ledger)))
        transports = open_transports(settings)
        name_default_store()
        for transport in transports.values():
            opened.push_async_callback(transport.aclose)
        observers = [RelayLog(), *relay_tracing(), *([monitor.metrics] if monitor else ())]
        relay = make_relay(
            settings,
            store=store,
            transports=transports,
            name=name,
            observers=observers,
            on_stall=_quit,
            fail_fast=fail_fast,
        )
        if monitor is not None:
            await opened.enter_async_context(monitor.serve(relay, store))
        stop_on_signals(relay.stop)
        _print_start(settings, relay.id, name, monitor.address if monitor else None, as_json)
        collect_rarely()
        if times is not None:
            # The stdout transport writes events to standard output, so this line goes to standard error.
            remaining = await relay.run_until_empty(recorded_after=times.after, recorded_before=times.before)
            _print(
                _describe_remaining(remaining), {"relay": relay.id, "remaining": remaining}, as_json, err=not as_json
            )
        else:
            await relay.run()


def collect_rarely() -> None:
    """Spend less CPU time on garbage collection, which takes a sixth of the relay's own time.

    The objects of a relay rarely form cycles, and imported modules are never freed.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _print_start(settings: Settings, relay: str, name: str, listens: str | None, as_json: bool) -> None:
    from pillarbox.ops.wiring import describe_routing

    routing, notes = describe_routing(settings), settings.notes
    facts = {"relay": relay, "name": name, "routing": routing, "notes": list(notes), "listen": listens}
    shown = [f"metrics and health on http://{listens}"] if listens else []
    _print("; ".join([f"relay {name or relay}: {routing}", *shown, *notes]), facts, as_json)


def _print(line: str, facts: Mapping[str, object], as_json: bool, *, err: bool = False) -> None:
    click.echo(safe_json(facts) if as_json else line, err=err)


def _describe_remaining(pending: int) -> str:
    if not pending:
        return "no pending events remain"
    return f"{pending} pending events cannot be sent now: see `pillarbox status` and `pillarbox events list`"


def _quit(reason: str) -> None:
    """End the process: its event loop is blocked and its lanes are released. A supervisor starts a new process."""
    click.echo(f"pillarbox: the relay ends, because its event loop is blocked: {reason}", err=True)
    os._exit(1)


def _arm(failpoint: str) -> None:
    if failpoint:
        from pillarbox import failpoints
        from pillarbox.ops.settings.sources import FAILPOINT

        point, _, count = failpoint.partition(":")
        if not (count or "1").isdecimal():
            raise ConfigurationError(f"{FAILPOINT} is {failpoint!r}: write name:count")
        failpoints.arm(point, int(count or "1"))
