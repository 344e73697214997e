"""`pillarbox keys groups`, `retry`, `skip` and `discard`: blocked keys by reason, and what to do about many at once.

A blocking event belongs to the relay that owns its lane, which executes the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pillarbox.admin.listing import EventFilter
from pillarbox.core.text import plural
from pillarbox.ops.cli.exits import NotFoundError, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, number, print_json, print_table
from pillarbox.ops.cli.parameters import fingerprint

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore
    from pillarbox.ops.blocked_keys import KeyAction
    from pillarbox.ops.operator_requests import Pending

F = TypeVar("F", bound=Callable[..., object])


def _selection(command: F) -> F:
    """Add the options that select blocked keys."""
    for option in (
        as_json,
        yes_option,
        dry_run_option,
        click.option("--all", "every", is_flag=True, help="All keys that are blocked until an operator decides."),
        click.option("--error", metavar="TEXT", help="Only if the error contains this text; case-sensitive."),
        click.option("--destination", metavar="NAME", help="Only this destination."),
        click.option("--key", help="Only this key, such as ORDER:42."),
        click.option("--type", "event_type", metavar="TYPE", help="Only this type of the blocking event."),
        click.option("--group", type=fingerprint, metavar="GROUP", help="Only this group of `keys groups`."),
        click.argument("event_ids", metavar="[ID]...", nargs=-1),
    ):
        command = option(command)
    return command


@click.command("groups")
@as_json
def groups(as_json: bool) -> None:
    """List keys that are blocked until an operator decides, by reason, the largest group first.

    \b
    Examples:
      pillarbox keys groups
      pillarbox keys groups --json
    """
    from pillarbox.ops import blocked_keys
    from pillarbox.ops.cli.store_access import with_shared_store
    from pillarbox.ops.exports import blocked_group

    found = with_shared_store(blocked_keys.groups)
    if as_json:
        print_json({"groups": [blocked_group(group) for group in found.groups], "complete": found.complete})
    elif not found.groups:
        click.echo("no keys are blocked until an operator decides")
    else:
        print_table(
            ["group", "keys", "type", "destination", "first", "last", "example", "reason"],
            [
                [
                    group.fingerprint,
                    number(group.keys),
                    group.event_type,
                    group.destination,
                    group.first_at,
                    group.last_at,
                    group.example.event_id,
                    group.reason,
                ]
                for group in found.groups
            ],
        )
        if not found.complete:
            click.echo("more keys are blocked than were read: the counts are lower bounds", err=True)


@click.command("retry")
@_selection
def retry(**selected: Any) -> None:
    """Send the events that block keys again, by event id, filter or group, or all.

    An event id also selects an event that waits for its retry: it is sent now.

    \b
    Examples:
      pillarbox keys retry --group 3f9a1c27b0de
      pillarbox keys retry --destination billing --dry-run
    """
    _ask("retry", **selected)


@click.command("skip")
@_selection
def skip(**selected: Any) -> None:
    """Dead-letter the events that block keys, so that the keys continue, by event id, filter or group, or all.

    \b
    Examples:
      pillarbox keys skip 0190a5c2-7b1e-7d11-a01c-5f0c0d9f4a11
      pillarbox keys skip --destination billing --error "422" --yes
    """
    _ask("skip", **selected)


@click.command("discard")
@_selection
def discard(**selected: Any) -> None:
    """Delete the events that block keys, so that the keys continue, by event id, filter or group, or all.

    \b
    Example:
      pillarbox keys discard --type order.test --dry-run
    """
    _ask("discard", **selected)


def _ask(
    action: KeyAction,
    *,
    event_ids: tuple[str, ...],
    group: str | None,
    every: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    from pillarbox.ops import blocked_keys
    from pillarbox.ops.cli.store_access import operator, warn_without_relay, with_shared_store

    filtered = group is not None or any(filters.values())
    if sum((bool(event_ids), filtered, every)) != 1:
        raise click.UsageError("Give event ids, a filter or a group, or --all.")
    wanted = EventFilter(**filters)

    async def choose(store: AdminStore) -> Pending:
        if event_ids:
            return await blocked_keys.select_by_id(store, event_ids)
        return await blocked_keys.select(store, wanted, group=group)

    pending = with_shared_store(choose)
    if not pending and event_ids:
        raise NotFoundError(
            f"{', '.join(map(repr, event_ids))}: holds no key back; `pillarbox keys blocked` lists the events that do"
        )
    if not pending and group is not None:
        raise NotFoundError(f"group {group} has no blocked keys: see `pillarbox keys groups`")
    asked = 0
    if pending and not dry_run:
        if action == "discard" or not event_ids:
            confirm(f"{action.capitalize()} {_count(pending)}?", yes=yes, lines=pending.summary.texts)
        asked = with_shared_store(
            lambda store: blocked_keys.execute(
                store, action, pending, wanted=wanted, event_ids=event_ids, group=group, by=operator()
            )
        )
    if as_json:
        print_json({"matched": len(pending), "requested": asked, "dry_run": dry_run})
    elif not pending:
        click.echo("no matching keys are blocked")
    else:
        click.echo(f"would {action} {_count(pending)}" if dry_run else f"requested: {action} {_count(pending)}")
    if asked:
        warn_without_relay()


def _count(pending: Pending) -> str:
    return plural(len(pending), "blocking event")
