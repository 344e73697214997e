"""`pillarbox destinations`: the state of destinations, and the overrides of operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.cli.exits import NotFoundError, confirm, yes_option
from pillarbox.ops.cli.output import as_json, print_json, print_line, print_table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pillarbox.core.store import ForcedBreakerState
    from pillarbox.ops.destination_overrides import DestinationOverrides

_FORCE = click.option("--force", is_flag=True, help="Accept the name of a destination that does not exist yet.")
_NAMES = click.argument("names", metavar="[DESTINATION]...", nargs=-1)


@click.group()
def destinations() -> None:
    """List, pause, resume and rate-limit destinations; force their circuit breakers.

    Overrides are stored in the database and apply to all relays, also to those that start later.
    """


@destinations.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List destinations with their state and overrides.

    \b
    Examples:
      pillarbox destinations list
      pillarbox destinations list --json
    """
    from pillarbox.ops.cli.store_access import with_shared_store
    from pillarbox.ops.destination_overrides import list_destinations
    from pillarbox.relay.routing import rate_text

    found = with_shared_store(list_destinations)
    if as_json:
        rows = [
            {
                "name": view.name,
                "state": view.state,
                "forced": view.forced,
                "rate_limit": view.rate_limit,
                "last_error": view.last_error,
            }
            for view in found.views
        ]
        print_json({"paused": found.paused, "destinations": rows})
        return
    if found.paused:
        print_line(
            "every destination is paused by an operator: `pillarbox destinations resume` resumes them",
            colour="yellow",
        )
    if not found.views:
        click.echo("no destinations known yet")
        return
    print_table(
        ["destination", "state", "overridden", "limit", "last error"],
        [
            [
                view.name,
                view.state,
                "yes" if view.forced else "",
                rate_text(view.rate_limit) if view.rate_limit else "",
                view.last_error,
            ]
            for view in found.views
        ],
    )


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
