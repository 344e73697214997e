"""`pillarbox dead`: what was given up on waits for a person, who looks, sends it again or drops it.

Dead letters are nobody's lane, so they are inserted again or dropped at once. An event that was given up and holds its
key belongs to the owner of its lane: it is asked for, and the relay does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pillarbox.admin.dead_letters import DeadLetterFilter, DeadLetterPage
from pillarbox.admin.listing import EventFilter
from pillarbox.core.message import Status
from pillarbox.core.text import plural
from pillarbox.ops import exports
from pillarbox.ops.cli.dead_broker import broker
from pillarbox.ops.cli.dead_edit import edit
from pillarbox.ops.cli.dead_export import export
from pillarbox.ops.cli.events import as_object, print_story
from pillarbox.ops.cli.exits import NotFound, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, print_json, print_table
from pillarbox.ops.cli.parameters import NUMBER, fingerprint, letter_options, limit_option

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore
    from pillarbox.ops.decisions import Choice, Decision
    from pillarbox.ops.grouping import Groups

F = TypeVar("F", bound=Callable[..., object])


def choice_options(command: F) -> F:
    """The options by which a person decides what a decision is about."""
    for option in (
        as_json,
        yes_option,
        dry_run_option,
        click.option("--all", "every", is_flag=True, help="Everything that was given up."),
        click.option("--group", type=fingerprint, metavar="GROUP", help="Only this group, as `dead groups` names it."),
        letter_options,
        click.argument("event_ids", nargs=-1),
    ):
        command = option(command)
    return command


@click.group()
def dead() -> None:
    """What was given up on: list it, group it, show it, export it, edit it, send it again, drop it.

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
@letter_options
@limit_option
@click.option("--after", type=NUMBER, metavar="NUMBER", help="Go on behind this dead letter.")
@as_json
def list_(limit: int, after: int | None, as_json: bool, **filters: Any) -> None:
    """List dead letters, the newest first; --since counts from when they were given up.

    \b
    Example:
      pillarbox dead list --destination orders --error timeout
    """
    from pillarbox.ops.cli.working import with_shared_store

    wanted = DeadLetterFilter(**filters)
    page, held = with_shared_store(lambda store: _look(store, wanted, limit=limit, before=after))
    if as_json:
        print_json({"dead": [exports.listed_letter(letter) for letter in page.letters], "after": page.before})
        return
    if held:
        click.echo("some events hold their keys until you decide: `pillarbox events list --status FAILED`", err=True)
    if not page.letters:
        click.echo("no dead letter fits", err=True)
        return
    print_table(
        ["letter", "given up", "event", "type", "key", "destination", "attempts", "error"],
        [[x.id, x.died_at, x.event_id, x.event_type, x.key, x.destination, x.attempts, x.error] for x in page.letters],
    )
    if page.before is not None:
        click.echo(f"there may be more: --after {page.before}", err=True)


async def _look(
    store: AdminStore, wanted: DeadLetterFilter, *, limit: int, before: int | None
) -> tuple[DeadLetterPage, bool]:
    """A page, and whether anything is given up that is no dead letter because it holds its key."""
    held = await store.admin.events.list(EventFilter(blocked=True), limit=1)
    return await _page(store, wanted, limit=limit, before=before), bool(held.events)


async def _page(store: AdminStore, wanted: DeadLetterFilter, *, limit: int, before: int | None) -> DeadLetterPage:
    page = await store.admin.dead_letters.list(wanted, limit=limit, before=before)
    while page.before is not None and len(page.letters) < limit:
        more = await store.admin.dead_letters.list(wanted, limit=limit - len(page.letters), before=page.before)
        page = DeadLetterPage(page.letters + more.letters, more.before)
    return page


@dead.command("groups")
@letter_options
@limit_option
@as_json
def groups(limit: int, as_json: bool, **filters: Any) -> None:
    """Dead letters by reason, the largest group first.

    A group has the same event type, the same destination and the same error but for numbers, ids, quoted values and
    addresses. The newest 10,000 dead letters are looked at; if there are more, counts are marked with ~.

    \b
    Example:
      pillarbox dead groups --since 1d
      pillarbox dead retry --group 3f9a1c27b0de
    """
    from pillarbox.ops import grouping
    from pillarbox.ops.cli.working import with_shared_store

    wanted = DeadLetterFilter(**filters)
    found = with_shared_store(lambda store: grouping.groups(store, wanted))
    if as_json:
        listed = [exports.letter_group(group) for group in found.groups[:limit]]
        print_json({"groups": listed, "whole": found.whole})
    elif found.groups:
        _print_groups(found, limit=limit)
    else:
        click.echo("no dead letter fits", err=True)


def _print_groups(found: Groups, *, limit: int) -> None:
    about = "" if found.whole else "~"
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
    if (left := len(found.groups) - limit) > 0:
        click.echo(f"{left:,} more: --limit", err=True)
    if not found.whole:
        click.echo("there are more dead letters than the newest 10,000 that were looked at", err=True)


@dead.command("show")
@click.argument("event_id")
@as_json
def show(event_id: str, as_json: bool) -> None:
    """Show an event that was given up on, whole, with the sends that failed.

    \b
    Example:
      pillarbox dead show evt-001
    """
    from pillarbox.ops.cli.working import with_shared_store

    story = with_shared_store(lambda store: store.admin.events.show(event_id))
    given_up = [detail for detail in story.events if detail.status is Status.FAILED]
    if not given_up:
        raise NotFound(f"nothing was given up on of an event {event_id!r}: see `pillarbox events show`")
    story = story._replace(events=given_up)
    if as_json:
        print_json(as_object(event_id, story))
    else:
        print_story(story)


@dead.command("retry")
@choice_options
def retry(**chosen: Any) -> None:
    """Send dead letters again: those of events named by their ids, those that fit a filter, or all.

    Each goes to the end of its key with its attempts at zero, the oldest first. An event that holds its key until a
    person decides is asked of the relay that owns its lane, and keeps its place.

    \b
    Examples:
      pillarbox dead retry evt-001 evt-002
      pillarbox dead retry --destination orders --since 2h --dry-run
      pillarbox dead retry --group 3f9a1c27b0de
      pillarbox dead retry --all --yes
    """
    _act("retry", **chosen)


@dead.command("discard")
@choice_options
def discard(**chosen: Any) -> None:
    """Drop dead letters for good: those of events named by their ids, those that fit a filter, or all.

    \b
    Examples:
      pillarbox dead discard evt-001
      pillarbox dead discard --type order.test --dry-run
    """
    _act("discard", **chosen)


def _act(
    decision: Decision,
    *,
    event_ids: tuple[str, ...],
    group: str | None,
    every: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    from pillarbox.ops import decisions
    from pillarbox.ops.cli.working import operator, warn_without_relay, with_shared_store

    wanted = DeadLetterFilter(**filters)
    asked = bool(event_ids or wanted.asked or group)
    if not (asked or every):
        raise click.UsageError("Name events by their ids, give a filter or a group, or say --all.")
    if every and asked:
        raise click.UsageError("--all leaves nothing to choose: give it alone.")
    choice = with_shared_store(lambda store: decisions.choose(store, event_ids, wanted, group=group))
    if group is not None and not choice.count:
        raise NotFound(f"no dead letter of group {group} fits: see `pillarbox dead groups`")
    if event_ids and not choice.count:
        raise NotFound(f"nothing was given up on of {', '.join(map(repr, event_ids))}: see `pillarbox events show`")
    done = requested = 0
    if choice.count and not dry_run:
        if decision == "discard" or not event_ids:
            confirm(f"{decision.capitalize()} {_told(choice)}?", yes=yes)
        done, requested = with_shared_store(lambda store: decisions.carry_out(store, decision, choice, by=operator()))
    if as_json:
        print_json({"matched": choice.count, "done": done, "requested": requested, "dry_run": dry_run})
    elif dry_run or not choice.count:
        click.echo(f"would {decision} {_told(choice)}" if choice.count else "no dead letter fits")
    else:
        _tell(decision, choice, done=done, requested=requested)
    if requested:
        warn_without_relay()


def _told(choice: Choice) -> str:
    letters, held = len(choice.letters), len(choice.blocked)
    parts = [plural(letters, "dead letter")] if letters or not held else []
    parts += [plural(held, "event that holds a key", "events that hold a key")] if held else []
    return " and ".join(parts)


def _tell(decision: Decision, choice: Choice, *, done: int, requested: int) -> None:
    if choice.letters:
        words = {"retry": "sent again", "discard": "dropped"}[decision]
        click.echo(f"{words}: {plural(done, 'dead letter')}")
    if (left := len(choice.letters) - done) and decision == "retry":
        click.echo(f"{left:,} stay: the same event already waits for the same destination, or somebody was faster")
    if requested:
        click.echo(f"asked of the relay: {requested:,}; done as soon as the owner of the lane looks")
