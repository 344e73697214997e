"""`pillarbox events retry`, `reschedule` and `discard`: operator requests for pending events.

A pending event belongs to the relay that owns its lane, which executes the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pillarbox.admin.listing import EventFilter
from pillarbox.core.text import plural
from pillarbox.ops.cli.exits import NotFoundError, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, print_json
from pillarbox.ops.cli.parameters import age, event_options

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore
    from pillarbox.admin.requests import Action
    from pillarbox.ops.operator_requests import Pending

F = TypeVar("F", bound=Callable[..., object])


def _choice(command: F) -> F:
    """Add the options that select events for a request."""
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
    """Send pending events now, before their next retry or their due time.

    \b
    Examples:
      pillarbox events retry evt-001
      pillarbox events retry --destination orders --state retrying --dry-run
    """
    _ask("retry", **chosen)


@click.command("reschedule")
@click.option(
    "--in",
    "delay",
    type=age,
    required=True,
    metavar="DURATION",
    help="Delay from now, such as 2h; 0s: now.",
)
@_choice
def reschedule(delay: float, **chosen: Any) -> None:
    """Send pending events later.

    \b
    Example:
      pillarbox events reschedule --type report.ready --in 2h
    """
    _ask("reschedule", delay=delay, **chosen)


@click.command("discard")
@_choice
def discard(**chosen: Any) -> None:
    """Discard pending events without sending them.

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
    from pillarbox.ops import operator_requests
    from pillarbox.ops.bulk_actions import Scope
    from pillarbox.ops.cli.store_access import operator, warn_without_relay, with_shared_store

    if bool(event_ids) == any(filters.values()):
        raise click.UsageError("Give either event ids or a filter.")

    scope = Scope(wanted=EventFilter(**filters), event_ids=tuple(dict.fromkeys(event_ids)))

    async def choose(store: AdminStore) -> Pending:
        return await (
            operator_requests.select_by_id(store, event_ids)
            if event_ids
            else operator_requests.select(store, EventFilter(**filters))
        )

    pending = with_shared_store(choose)
    if event_ids and not pending:
        raise NotFoundError(f"{', '.join(map(repr, event_ids))}: not pending; see `pillarbox events show`")
    asked = 0
    if pending and not dry_run:
        if action == "discard" or not event_ids:
            confirm(f"{action.capitalize()} {_count(pending)}?", yes=yes, lines=pending.summary.texts)
        asked = with_shared_store(
            lambda store: operator_requests.request_all(store, action, pending, scope, delay=delay, by=operator())
        )
    if as_json:
        print_json({"matched": len(pending), "requested": asked, "dry_run": dry_run})
    elif not pending:
        click.echo("no matching pending events")
    else:
        click.echo(f"would {action} {_count(pending)}" if dry_run else f"requested: {action} {_count(pending)}")
    if asked:
        warn_without_relay()


def _count(pending: Pending) -> str:
    return plural(len(pending), "event")
