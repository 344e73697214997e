"""`pillarbox destinations`: how they fare, and what a person sets for them. It holds for all relays of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from pillarbox.core.errors import ConfigurationError
from pillarbox.ops.cli.exits import NotFound, confirm, yes_option
from pillarbox.ops.cli.output import as_json, print_json, print_line, print_table

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pillarbox.core.store import Forced
    from pillarbox.ops.steering import Helm

_FORCE = click.option("--force", is_flag=True, help="Take a name that nobody knows: a destination that will come.")
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
    from pillarbox.relay.routing import rate_text

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
            "every destination is paused by an operator: `pillarbox destinations resume` lets them go on",
            colour="yellow",
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
    """Send nothing to these destinations until they are resumed; without a name, to none at all.

    What is recorded for them waits, in order.

    \b
    Examples:
      pillarbox destinations pause mailer
      pillarbox destinations pause --yes
    """
    if not names:
        confirm("Pause every destination?", yes=yes)
    _steer(lambda helm: helm.pause(names), names, "paused", force=force, as_json=as_json)


@destinations.command()
@_NAMES
@_FORCE
@as_json
def resume(names: tuple[str, ...], force: bool, as_json: bool) -> None:
    """Let these destinations go on; without a name, end the pause of all.

    A destination that was paused by name stays paused until it is resumed by name.

    \b
    Examples:
      pillarbox destinations resume mailer
      pillarbox destinations resume
    """
    _steer(lambda helm: helm.resume(names), names, "resumed", force=force, as_json=as_json)


@destinations.command()
@click.argument("name", metavar="DESTINATION")
@click.argument("rate", metavar="RATE")
@_FORCE
@as_json
def limit(name: str, rate: str, force: bool, as_json: bool) -> None:
    """Send at most RATE messages, such as 500/s or 30/m, of all relays together; `off` leaves it to the settings.

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
    told = "limit of the settings" if most is None else f"limited to {rate}"
    _steer(lambda helm: helm.limit(name, most), (name,), told, force=force, as_json=as_json)


@destinations.command()
@click.argument("name", metavar="DESTINATION")
@click.argument("state", type=click.Choice(["open", "closed", "auto"]))
@_FORCE
@as_json
def breaker(name: str, state: Literal["open", "closed", "auto"], force: bool, as_json: bool) -> None:
    """Hold a breaker `open` (nothing passes) or `closed` (everything passes), or leave it to itself: `auto`.

    \b
    Examples:
      pillarbox destinations breaker partner open
      pillarbox destinations breaker partner auto
    """
    held: Forced | None = None if state == "auto" else state
    told = "breaker left to itself" if held is None else f"breaker held {state}"
    _steer(lambda helm: helm.hold(name, held), (name,), told, force=force, as_json=as_json)


def _steer(
    act: Callable[[Helm], Awaitable[None]], names: tuple[str, ...], what: str, *, force: bool, as_json: bool
) -> None:
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.working import operator, with_shared_store
    from pillarbox.ops.steering import Helm, UnknownDestination

    configured = current_settings().destinations
    try:
        with_shared_store(lambda store: act(Helm(store=store, by=operator(), configured=configured, force=force)))
    except UnknownDestination as error:
        raise NotFound(f"{error}; --force takes one that will come") from None
    if as_json:
        print_json({"destinations": list(names), "done": what})
    else:
        click.echo(f"{', '.join(names) or 'every destination'}: {what}")
