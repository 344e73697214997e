"""`pillarbox destinations`: the state of destinations, and the overrides of operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.cli.exits import NotFoundError, confirm, yes_option
from pillarbox.ops.cli.output import as_json, print_facts, print_json, print_line, print_table, span

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pillarbox.admin.admin import AdminStore
    from pillarbox.core.store import ForcedBreakerState
    from pillarbox.ops.destination_overrides import DestinationOverrides
    from pillarbox.ops.destination_reports import DestinationReport

_FORCE = click.option("--force", is_flag=True, help="Accept the name of a destination that does not exist yet.")
_NAMES = click.argument("names", metavar="[DESTINATION]...", nargs=-1)


@click.group()
def destinations() -> None:
    """List, show, pause, resume and rate-limit destinations; force their circuit breakers.

    Overrides are stored in the database and apply to all relays, also to those that start later.
    """


@destinations.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List destinations with their state, pending messages, rates and overrides.

    Rates are messages per second of the last five minutes. Of more than 10,000 pending messages, the numbers of a
    destination are estimates, marked ~, or lower bounds.

    \b
    Examples:
      pillarbox destinations list
      pillarbox destinations list --json
    """
    from pillarbox.ops.exports import destination_report
    from pillarbox.relay.routing import rate_text

    paused, found = _read()
    if as_json:
        print_json({"paused": paused, "destinations": [destination_report(report) for report in found]})
        return
    _warn_paused(paused)
    if not found:
        click.echo("no destinations known yet")
        return
    print_table(
        [
            "destination",
            "state",
            "pending",
            "oldest",
            "in/s",
            "out/s",
            "failed",
            "overridden by",
            "limit",
            "last error",
        ],
        [
            [
                report.name or "(not routed yet)",
                report.view.state if report.name else "",
                report.pending.text,
                "" if report.oldest is None else span(report.oldest),
                _pace(report.recorded),
                _pace(report.rates.published if report.rates else None),
                f"{report.rates.failed:.1%}" if report.rates else "",
                report.change.by if report.change else "",
                rate_text(report.view.rate_limit) if report.view.rate_limit else "",
                report.view.last_error,
            ]
            for report in found
        ],
    )


@destinations.command("show")
@click.argument("name", metavar="DESTINATION")
@as_json
def show(name: str, as_json: bool) -> None:
    """Show one destination: state, pending messages, rates, errors, and who set its overrides.

    \b
    Examples:
      pillarbox destinations show billing
      pillarbox destinations show billing --json
    """
    from pillarbox.ops.exports import destination_report
    from pillarbox.relay.routing import rate_text

    paused, found = _read()
    report = next((one for one in found if one.name == name and name), None)
    if report is None:
        known = ", ".join(one.name for one in found if one.name) or "none is known yet"
        raise NotFoundError(f"there is no destination {name!r}; there are: {known}")
    if as_json:
        print_json(destination_report(report))
        return
    _warn_paused(paused)
    view, rates = report.view, report.rates
    print_facts(
        [
            ("destination", view.name),
            ("state", view.state),
            ("breaker", view.breaker),
            ("pending", report.pending.text),
            ("by state", ", ".join(f"{count:,} {state.label}" for state, count in report.states.items())),
            ("oldest", None if report.oldest is None else span(report.oldest)),
            ("in", None if report.recorded is None else f"{report.recorded:,.1f}/s"),
            ("out", None if rates is None else f"{rates.published:,.1f}/s"),
            ("failed", None if rates is None else f"{rates.failed:.1%} of sends"),
            ("lag p95", None if rates is None or rates.p95 is None else span(rates.p95)),
            ("paused", "yes" if view.paused else "no"),
            ("rate limit", rate_text(view.rate_limit) if view.rate_limit else None),
            ("overridden by", report.change.by if report.change else None),
            ("overridden at", report.change.at if report.change else None),
            ("last error", view.last_error),
        ]
    )


def _read() -> tuple[bool, list[DestinationReport]]:
    """Return whether every destination is paused, and the destinations."""
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.store_access import with_shared_store
    from pillarbox.ops.destination_reports import read_reports
    from pillarbox.ops.health import take_snapshot

    async def read(store: AdminStore) -> tuple[bool, list[DestinationReport]]:
        snapshot = await take_snapshot(store)
        return snapshot.paused, await read_reports(store, snapshot, routes=current_settings().routes)

    return with_shared_store(read)


def _warn_paused(paused: bool) -> None:
    if paused:
        print_line(
            "every destination is paused by an operator: `pillarbox destinations resume` resumes them",
            colour="yellow",
        )


def _pace(per_second: float | None) -> str:
    return "" if per_second is None else f"{per_second:,.1f}"


@destinations.command()
@_NAMES
@yes_option
@_FORCE
@as_json
def pause(names: tuple[str, ...], yes: bool, force: bool, as_json: bool) -> None:
    """Pause destinations until they are resumed; without a name, pause all.

    Events for a paused destination stay pending, in order.

    \b
    Examples:
      pillarbox destinations pause mailer
      pillarbox destinations pause --yes
    """
    if not names:
        confirm("Pause every destination?", yes=yes)
    _override(lambda overrides: overrides.pause(names), names, "paused", force=force, as_json=as_json)


@destinations.command()
@_NAMES
@_FORCE
@as_json
def resume(names: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Resume destinations; without a name, end the pause of all.

    A destination that was paused by name stays paused until it is resumed by name.

    \b
    Examples:
      pillarbox destinations resume mailer
      pillarbox destinations resume
    """
    _override(lambda overrides: overrides.resume(names), names, "resumed", force=force, as_json=as_json)


@destinations.command()
@click.argument("name", metavar="DESTINATION")
@click.argument("rate", metavar="RATE")
@_FORCE
@as_json
def limit(name: str, rate: str, force: bool, as_json: bool) -> None:
    """Limit a destination to RATE, such as 500/s or 30/m, for all relays together.

    `off` restores the limit of the settings.

    \b
    Examples:
      pillarbox destinations limit partner 30/m
      pillarbox destinations limit partner off
    """
    from pillarbox.relay.routing import per_second

    try:
        most = None if rate == "off" else per_second(rate)
    except ConfigurationError as error:
        raise click.BadParameter(str(error), param_hint="RATE") from None
    done = "limit of the settings restored" if most is None else f"limited to {rate}"
    _override(lambda overrides: overrides.limit(name, most), (name,), done, force=force, as_json=as_json)


@destinations.command()
@click.argument("name", metavar="DESTINATION")
@click.argument("state", type=click.Choice(["open", "closed", "auto"]))
@_FORCE
@as_json
def breaker(name: str, state: Literal["open", "closed", "auto"], force: bool, as_json: bool) -> None:
    """Force a circuit breaker `open` (send nothing) or `closed` (send everything); `auto` lets the relay decide.

    \b
    Examples:
      pillarbox destinations breaker partner open
      pillarbox destinations breaker partner auto
    """
    forced: ForcedBreakerState | None = None if state == "auto" else state
    done = "breaker decided by the relay" if forced is None else f"breaker forced {state}"
    _override(lambda overrides: overrides.force_breaker(name, forced), (name,), done, force=force, as_json=as_json)


def _override(
    act: Callable[[DestinationOverrides], Awaitable[None]],
    names: tuple[str, ...],
    done: str,
    *,
    force: bool,
    as_json: bool,
) -> None:
    from pillarbox.core.errors import UnknownDestinationError
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.store_access import operator, with_shared_store
    from pillarbox.ops.destination_overrides import DestinationOverrides

    configured = current_settings().destinations
    try:
        with_shared_store(
            lambda store: act(DestinationOverrides(store=store, by=operator(), configured=configured, force=force))
        )
    except UnknownDestinationError as error:
        raise NotFoundError(f"{error}; --force accepts a destination that does not exist yet") from None
    if as_json:
        print_json({"destinations": list(names), "done": done})
    else:
        click.echo(f"{', '.join(names) or 'every destination'}: {done}")
