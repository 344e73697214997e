"""`pillarbox dead`: list, show, retry and discard dead letters.

A dead letter belongs to no lane, so that the command retries or deletes it at once. A blocked event belongs to the
relay that owns its lane, which executes the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pillarbox.admin.dead_letters import DeadLetterFilter, DeadLetterPage
from pillarbox.admin.listing import EventFilter
from pillarbox.admin.states import EventState
from pillarbox.core.message import Status
from pillarbox.core.text import plural
from pillarbox.ops import exports
from pillarbox.ops.cli.dead_broker import broker
from pillarbox.ops.cli.dead_edit import edit
from pillarbox.ops.cli.dead_export import export
from pillarbox.ops.cli.events import as_object, print_report
from pillarbox.ops.cli.exits import NotFoundError, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, print_json, print_table
from pillarbox.ops.cli.parameters import NUMBER, dead_letter_options, fingerprint, limit_option

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore
    from pillarbox.ops.dead_letter_actions import DeadLetterAction, DeadLetterSelection
    from pillarbox.ops.dead_letter_groups import Groups

F = TypeVar("F", bound=Callable[..., object])


def selection_options(command: F) -> F:
    """Add the options that select dead letters for an action."""
    for option in (
        as_json,
        yes_option,
        dry_run_option,
        click.option("--all", "every", is_flag=True, help="All dead letters and blocked events."),
        click.option("--group", type=fingerprint, metavar="GROUP", help="Only this group of `dead groups`."),
        dead_letter_options,
        click.argument("event_ids", nargs=-1),
    ):
        command = option(command)
    return command


@click.group()
def dead() -> None:
    """List, group, show, export, edit, retry and discard dead letters.

    \b
    Examples:
      pillarbox dead groups
      pillarbox dead list --since 1h
      pillarbox dead retry evt-001
      pillarbox dead retry --error "connection refused" --dry-run
      pillarbox dead discard --type order.test --yes
      pillarbox dead broker list
    """


dead.add_command(broker)
dead.add_command(edit)
dead.add_command(export)


@dead.command("list")
@dead_letter_options
@limit_option
@click.option("--after", type=NUMBER, metavar="NUMBER", help="Continue after this dead letter.")
@as_json
def list_(limit: int, after: int | None, as_json: bool, **filters: Any) -> None:
    """List dead letters, the newest first; --since is the time of dead-lettering.

    \b
    Example:
      pillarbox dead list --destination orders --error timeout
    """
    from pillarbox.ops.cli.store_access import with_shared_store

    wanted = DeadLetterFilter(**filters)
    page, has_blocked = with_shared_store(lambda store: _read(store, wanted, limit=limit, before=after))
    if as_json:
        print_json(
            {
                "dead_letters": [exports.listed_dead_letter(dead_letter) for dead_letter in page.dead_letters],
                "after": page.before,
            }
        )
        return
    if has_blocked:
        click.echo("some events block their keys and are no dead letters: `pillarbox keys groups` lists them", err=True)
    if not page.dead_letters:
        click.echo("no matching dead letters", err=True)
        return
    print_table(
        ["number", "dead-lettered", "event", "type", "key", "destination", "attempts", "error"],
        [
            [x.id, x.dead_lettered_at, x.event_id, x.event_type, x.key, x.destination, x.attempts, x.error]
            for x in page.dead_letters
        ],
    )
    if page.before is not None:
        click.echo(f"for the next page: --after {page.before}", err=True)


async def _read(
    store: AdminStore, wanted: DeadLetterFilter, *, limit: int, before: int | None
) -> tuple[DeadLetterPage, bool]:
    """Return a page, and whether there are blocked events, which are not dead letters."""
    blocked = await store.admin.events.list(EventFilter(state=EventState.BLOCKED), limit=1)
    return await _page(store, wanted, limit=limit, before=before), bool(blocked.events)


async def _page(store: AdminStore, wanted: DeadLetterFilter, *, limit: int, before: int | None) -> DeadLetterPage:
    page = await store.admin.dead_letters.list(wanted, limit=limit, before=before)
    while page.before is not None and len(page.dead_letters) < limit:
        more = await store.admin.dead_letters.list(wanted, limit=limit - len(page.dead_letters), before=page.before)
        page = DeadLetterPage(page.dead_letters + more.dead_letters, more.before)
    return page


@dead.command("groups")
@dead_letter_options
@limit_option
@as_json
def groups(limit: int, as_json: bool, **filters: Any) -> None:
    """Group dead letters by reason, the largest group first.

    A group has one event type, one destination and one error, ignoring numbers, ids, quoted values and addresses. The
    command reads the newest 10,000 dead letters; if there are more, counts are marked with ~.

    \b
    Example:
      pillarbox dead groups --since 1d
      pillarbox dead retry --group 3f9a1c27b0de
    """
    from pillarbox.ops import dead_letter_groups
    from pillarbox.ops.cli.store_access import with_shared_store

    wanted = DeadLetterFilter(**filters)
    found = with_shared_store(lambda store: dead_letter_groups.groups(store, wanted))
    if as_json:
        listed = [exports.dead_letter_group(group) for group in found.groups[:limit]]
        print_json({"groups": listed, "complete": found.complete})
    elif found.groups:
        _print_groups(found, limit=limit)
    else:
        click.echo("no matching dead letters", err=True)


def _print_groups(found: Groups, *, limit: int) -> None:
    about = "" if found.complete else "~"
    print_table(
        ["group", "count", "type", "destination", "first", "last", "reason", "example"],
        [
            [
                group.fingerprint,
                f"{about}{group.count:,}",
                group.event_type,
                group.destination,
                group.first_at,
                group.last_at,
                group.reason,
                group.example.event_id,
            ]
            for group in found.groups[:limit]
        ],
    )
    if (more := len(found.groups) - limit) > 0:
        click.echo(f"{more:,} more groups: --limit", err=True)
    if not found.complete:
        click.echo("there are more dead letters; only the newest 10,000 were read", err=True)


@dead.command("show")
@click.argument("event_id")
@as_json
def show(event_id: str, as_json: bool) -> None:
    """Show a dead-lettered event with its failed sends.

    \b
    Example:
      pillarbox dead show evt-001
    """
    from pillarbox.ops.cli.store_access import with_shared_store

    story = with_shared_store(lambda store: store.admin.events.show(event_id))
    dead_lettered = [detail for detail in story.events if detail.status is Status.FAILED]
    if not dead_lettered:
        raise NotFoundError(f"event {event_id!r} has no dead letters: see `pillarbox events show`")
    story = story._replace(events=dead_lettered)
    if as_json:
        print_json(as_object(event_id, story))
    else:
        print_report(story)


@dead.command("retry")
@selection_options
def retry(**selected: Any) -> None:
    """Retry dead letters by event id, filter or group, or all.

    Each goes to the end of its key with its attempts reset to zero, the oldest first. For a blocked event the command
    sends a request to the relay that owns its lane; the event keeps its position.

    \b
    Examples:
      pillarbox dead retry evt-001 evt-002
      pillarbox dead retry --destination orders --since 2h --dry-run
      pillarbox dead retry --group 3f9a1c27b0de
      pillarbox dead retry --all --yes
    """
    _act("retry", **selected)


@dead.command("discard")
@selection_options
def discard(**selected: Any) -> None:
    """Discard dead letters by event id, filter or group, or all.

    \b
    Examples:
      pillarbox dead discard evt-001
      pillarbox dead discard --type order.test --dry-run
    """
    _act("discard", **selected)


def _act(
    action: DeadLetterAction,
    *,
    event_ids: tuple[str, ...],
    group: str | None,
    every: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    from pillarbox.ops import dead_letter_actions
    from pillarbox.ops.cli.store_access import operator, warn_without_relay, with_shared_store

    wanted = DeadLetterFilter(**filters)
    asked = bool(event_ids or wanted.asked or group)
    if not (asked or every):
        raise click.UsageError("Give event ids, a filter, a group, or --all.")
    if every and asked:
        raise click.UsageError("--all cannot be combined with event ids, a filter or a group.")
    selection = with_shared_store(lambda store: dead_letter_actions.select(store, event_ids, wanted, group=group))
    if group is not None and not selection.count:
        raise NotFoundError(f"group {group} has no matching dead letters: see `pillarbox dead groups`")
    if event_ids and not selection.count:
        raise NotFoundError(f"{', '.join(map(repr, event_ids))}: no dead letters; see `pillarbox events show`")
    done = requested = 0
    if selection.count and not dry_run:
        if action == "discard" or not event_ids:
            confirm(
                f"{action.capitalize()} {_describe(selection)}?",
                yes=yes,
                lines=selection.summary.texts,
            )
        done, requested = with_shared_store(
            lambda store: dead_letter_actions.execute(store, action, selection, by=operator())
        )
    if as_json:
        print_json({"matched": selection.count, "done": done, "requested": requested, "dry_run": dry_run})
    elif dry_run or not selection.count:
        click.echo(f"would {action} {_describe(selection)}" if selection.count else "no matching dead letters")
    else:
        _print(action, selection, done=done, requested=requested)
    if requested:
        warn_without_relay()


def _describe(selection: DeadLetterSelection) -> str:
    dead_letters, blocked = len(selection.dead_letters), len(selection.blocked)
    parts = [plural(dead_letters, "dead letter")] if dead_letters or not blocked else []
    parts += [plural(blocked, "blocked event")] if blocked else []
    return " and ".join(parts)


def _print(action: DeadLetterAction, selection: DeadLetterSelection, *, done: int, requested: int) -> None:
    if selection.dead_letters:
        words = {"retry": "retried", "discard": "discarded"}[action]
        click.echo(f"{words}: {plural(done, 'dead letter')}")
    if (skipped := len(selection.dead_letters) - done) and action == "retry":
        click.echo(f"{skipped:,} skipped: already pending, or changed concurrently")
    if requested:
        click.echo(f"requested for {plural(requested, 'blocked event')}; the relay executes it with its next fetch")
