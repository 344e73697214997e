"""`pillarbox destinations`: how they fare, and what a person sets for them. It holds for all relays of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.cli.exits import confirm, yes_option
from pillarbox.ops.cli.output import as_json, print_json, print_line, print_table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pillarbox.core.store import Store

_NAMES = click.argument("names", metavar="[DESTINATION]...", nargs=-1)


@click.group()
def destinations() -> None:
    """How destinations fare; pause them, limit them, hold their breakers.

    What is set here is kept in the store and holds for all its relays, also for those that start later.
    """


@destinations.command("list")
@as_json
def list_(as_json: bool) -> None:
    """Every destination that a relay or a person has something to say about.

    \b
    Examples:
      pillarbox destinations list
      pillarbox destinations list --json
    """
    from pillarbox.ops import steering
    from pillarbox.ops.cli.working import with_shared_store

    found = with_shared_store(steering.destinations)
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
            "a person paused every destination: `pillarbox destinations resume` lets them go on", colour="yellow"
        )
    if not found.views:
        click.echo("no relay and no person has anything to say about a destination yet")
        return
    print_table(
        ["destination", "state", "held by a person", "limit", "last error"],
        [
            [
                view.name,
                view.state,
                "yes" if view.forced else "",
                f"{view.rate_limit:g}/s" if view.rate_limit else "",
                view.last_error,
            ]
            for view in found.views
        ],
    )


@destinations.command()
@_NAMES
@yes_option
@as_json
def pause(names: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Send nothing to these destinations until they are resumed; without a name, to none at all.

    What is recorded for them waits, in order.

    \b
    Examples:
      pillarbox destinations pause mailer
      pillarbox destinations pause --yes
    """
    from pillarbox.ops import steering

    if not names:
        confirm("Pause every destination?", yes=yes)
    _steer(lambda store, by: steering.pause(store, names, by=by), names, "paused", as_json)


@destinations.command()
@_NAMES
@as_json
def resume(names: tuple[str, ...], as_json: bool) -> None:
    """Let these destinations go on; without a name, end the pause of all.

    A destination that was paused by name stays paused until it is resumed by name.

    \b
    Examples:
      pillarbox destinations resume mailer
      pillarbox destinations resume
    """
    from pillarbox.ops import steering

    _steer(lambda store, by: steering.resume(store, names, by=by), names, "resumed", as_json)


@destinations.command()
@click.argument("name", metavar="DESTINATION")
@click.argument("rate", metavar="RATE")
@as_json
def limit(name: str, rate: str, as_json: bool) -> None:
    """Send at most RATE messages, such as 500/s or 30/m, of all relays together; `off` leaves it to the settings.

    \b
    Examples:
      pillarbox destinations limit partner 30/m
      pillarbox destinations limit partner off
    """
    from pillarbox.ops import steering
    from pillarbox.relay.routing import per_second

    try:
        most = None if rate == "off" else per_second(rate)
    except ConfigurationError as error:
        raise click.BadParameter(str(error), param_hint="RATE") from None
    told = "limit of the settings" if most is None else f"limited to {rate}"
    _steer(lambda store, by: steering.limit(store, name, most, by=by), (name,), told, as_json)


@destinations.command()
@click.argument("name", metavar="DESTINATION")
@click.argument("state", type=click.Choice(["open", "closed", "auto"]))
@as_json
def breaker(name: str, state: str, as_json: bool) -> None:
    """Hold a breaker `open` (nothing passes) or `closed` (everything passes), or leave it to itself: `auto`.

    \b
    Examples:
      pillarbox destinations breaker partner open
      pillarbox destinations breaker partner auto
    """
    from pillarbox.ops import steering

    forced = {"open": "open", "closed": "closed", "auto": None}[state]
    told = "breaker left to itself" if forced is None else f"breaker held {state}"
    _steer(lambda store, by: steering.force(store, name, forced, by=by), (name,), told, as_json)  # type: ignore[arg-type]


def _steer(act: Callable[[Store, str], Awaitable[None]], names: tuple[str, ...], what: str, as_json: bool) -> None:
    from pillarbox.ops.cli.working import operator, with_shared_store

    with_shared_store(lambda store: act(store, operator()))
    if as_json:
        print_json({"destinations": list(names), "done": what})
    else:
        click.echo(f"{', '.join(names) or 'every destination'}: {what}")
