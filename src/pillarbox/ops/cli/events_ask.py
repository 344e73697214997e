"""`pillarbox events retry`, `reschedule` and `discard`: what a person asks of events that wait.

What waits belongs to the relay that owns its lane: it is asked, and does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pillarbox.admin.listing import EventFilter
from pillarbox.core.text import plural
from pillarbox.ops.cli.exits import NotFound, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, print_json
from pillarbox.ops.cli.parameters import age, event_options

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore
    from pillarbox.admin.requests import Action
    from pillarbox.ops.asking import Waiting

F = TypeVar("F", bound=Callable[..., object])


def _choice(command: F) -> F:
    """The options by which a person says which events are meant."""
    for option in (
        as_json,
        yes_option,
        dry_run_option,
        event_options,
        click.argument("event_ids", nargs=-1),
    ):
        command = option(command)
    return command


@click.command("retry")
@_choice
def retry(**chosen: Any) -> None:
    """Send events that wait now, whatever they wait for.

    \b
    Examples:
      pillarbox events retry evt-001
      pillarbox events retry --destination orders --retrying --dry-run
    """
    _ask("retry", **chosen)


@click.command("reschedule")
@click.option("--in", "delay", type=age, required=True, metavar="DURATION", help="When they are to be sent.")
@_choice
def reschedule(delay: float, **chosen: Any) -> None:
    """Send events that wait later.

    \b
    Example:
      pillarbox events reschedule --type report.ready --in 2h
    """
    _ask("reschedule", delay=delay, **chosen)


@click.command("discard")
@_choice
def discard(**chosen: Any) -> None:
    """Drop events that wait for good.

    \b
    Example:
      pillarbox events discard --type order.test --dry-run
    """
    _ask("discard", **chosen)


def _ask(
    action: Action,
    *,
    event_ids: tuple[str, ...],
    dry_run: bool,
    yes: bool,
    as_json: bool,
    delay: float = 0,
    **filters: Any,
) -> None:
    from pillarbox.ops import asking
    from pillarbox.ops.acts import Scope
    from pillarbox.ops.cli.working import operator, warn_without_relay, with_shared_store

    if bool(event_ids) == any(filters.values()):
        raise click.UsageError("Name events by their ids, or give a filter.")

    scope = Scope(wanted=EventFilter(**filters), event_ids=tuple(dict.fromkeys(event_ids)))

    async def choose(store: AdminStore) -> Waiting:
        return await (asking.named(store, event_ids) if event_ids else asking.choose(store, EventFilter(**filters)))

    waiting = with_shared_store(choose)
    if event_ids and not waiting:
        raise NotFound(f"nothing of {', '.join(map(repr, event_ids))} waits: see `pillarbox events show`")
    asked = 0
    if waiting and not dry_run:
        if action == "discard" or not event_ids:
            confirm(f"{action.capitalize()} {_told(waiting)}?", yes=yes)
        asked = with_shared_store(lambda store: asking.ask(store, action, waiting, scope, delay=delay, by=operator()))
    if as_json:
        print_json({"matched": len(waiting), "requested": asked, "dry_run": dry_run})
    elif not waiting:
        click.echo("nothing that waits fits")
    else:
        click.echo(f"would {action} {_told(waiting)}" if dry_run else f"asked of the relays: {action} {_told(waiting)}")
    if asked:
        warn_without_relay()


def _told(waiting: Waiting) -> str:
    return plural(len(waiting), "event")
