"""`pillarbox dead broker`: what consumers and the broker itself gave up on, where it lies: in queues of the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from pillarbox.core.errors import PillarboxError
from pillarbox.core.text import plural
from pillarbox.ops import exports
from pillarbox.ops.cli.context import current_settings, quiet_drivers
from pillarbox.ops.cli.exits import FAILURE, NotFound, confirm, dry_run_option, last_words, yes_option
from pillarbox.ops.cli.output import as_json, clean, print_json, print_table, progress
from pillarbox.ops.cli.parameters import limit_option

if TYPE_CHECKING:
    from pillarbox.admin.broker_dead_letters import BrokerLetter
    from pillarbox.ops.broker_queues import DeadQueue
    from pillarbox.ops.requeueing import Tally, Wish

F = TypeVar("F", bound=Callable[..., object])

OFTEN = 10
"""Looks after which a letter comes near the delivery limit that its queue may have."""
SHOWN = 5
"""Ids that are named of letters that stay."""


def queue_options(command: F) -> F:
    """The options by which dead-letter queues are chosen."""
    for option in (
        click.option("--transport", metavar="NAME", help="The RabbitMQ transport, where there are several."),
        click.option("--queue", metavar="NAME", help="This queue; default: all that the settings know of."),
    ):
        command = option(command)
    return command


@click.group()
def broker() -> None:
    """Dead letters on RabbitMQ: list them, move them back to their queues.

    The queues are those that the settings name as dead_letter of a queue, and NAME.dlq for every other queue NAME:
    there a Consumer puts what it gives up.

    \b
    Examples:
      pillarbox dead broker list
      pillarbox dead broker requeue --event-id evt-001
      pillarbox dead broker requeue --queue orders.dlq --all --dry-run
    """


@broker.command("list")
@queue_options
@limit_option
@click.option("--payload", "bodies", is_flag=True, help="Show what they carry, too.")
@as_json
def list_(queue: str | None, transport: str | None, limit: int, bodies: bool, as_json: bool) -> None:
    """List dead letters on the broker, the first in each queue first, with the reason and the queue they came from.

    They are taken in hand and given back in their order: meanwhile nobody else sees them, and afterwards consumers of
    the dead-letter queue see them as redelivered.

    \b
    Example:
      pillarbox dead broker list --queue orders.dlq --limit 10 --payload
    """
    from pillarbox.ops.broker_queues import first_letters

    queues = _existing(queue, transport)
    found = asyncio.run(first_letters(current_settings(), queues, limit=limit, bodies=bodies))
    if as_json:
        print_json({"letters": [_figures(letter, bodies=bodies) for letter in found]})
    elif found:
        _print(found, bodies=bodies)
    else:
        click.echo("no dead letter lies on the broker", err=True)
    if worn := sum(letter.given_out >= OFTEN for letter in found):
        click.echo(
            f"pillarbox: {worn:,} of them were given out {OFTEN} times or more; a queue with a delivery limit (20 from "
            "RabbitMQ 4 on) drops what is over it: requeue them, or set the policy delivery-limit to -1",
            err=True,
        )


@broker.command("requeue")
@queue_options
@click.option("--event-id", "event_ids", multiple=True, metavar="ID", help="Letters of this event; may be repeated.")
@click.option("--all", "every", is_flag=True, help="Everything that lies there now.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="The first so many.")
@click.option("--to", metavar="QUEUE", help="Move them there; default: each to the queue it came from.")
@dry_run_option
@yes_option
@as_json
def requeue(
    queue: str | None,
    transport: str | None,
    event_ids: tuple[str, ...],
    every: bool,
    limit: int | None,
    to: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Move dead letters on the broker back to the queues they came from, where a Consumer gives each one more try.

    Each is safe there before it leaves the dead letters. Killed in between it is in both, and comes twice: the inbox
    gives it its effect once.

    \b
    Examples:
      pillarbox dead broker requeue --event-id evt-001 --event-id evt-002
      pillarbox dead broker requeue --queue orders.dlq --limit 10 --dry-run
      pillarbox dead broker requeue --all --yes
    """
    from pillarbox.ops import requeueing

    if sum((bool(event_ids), every, limit is not None)) != 1:
        raise click.UsageError("Say which: --event-id ID, --limit N or --all, and one of these only.")
    if to is not None and (queue is None or to in ("", queue)):
        raise click.UsageError("--to needs --queue: where the letters lie, and another queue that they go to.")
    queues = _existing(queue, transport)
    count = min(sum(queues.values()), limit or sum(queues.values()))
    if count and not (dry_run or event_ids):
        confirm(f"Requeue {_letters(count)}?", yes=yes)
    wish = requeueing.Wish(event_ids=event_ids, most=count, to=to, dry_run=dry_run)
    with progress("requeueing", size=None if event_ids else count) as advance:
        tally = asyncio.run(
            requeueing.requeue(current_settings(), queues, wish, on_each=lambda: advance(amount=1, events=1))
        )
    if tally.done and not dry_run:
        _enter(queues, tally)
    _report(tally, wish, as_json=as_json)


def _enter(queues: Iterable[DeadQueue], tally: Tally) -> None:
    """In the audit of the store, if there is one: a consumer may have none, and its letters are moved all the same."""
    from pillarbox.ops.cli.working import operator, with_shared_store

    named = ", ".join(queue.name for queue in queues)
    detail = {"moved": dict(tally.moved), "left": sum(map(len, tally.stayed.values()))}
    try:
        with_shared_store(
            lambda store: store.admin.audit.add("requeue", named, count=tally.done, detail=detail, by=operator())
        )
    except PillarboxError as error:
        click.echo(f"pillarbox: it is not in the audit: {last_words(error)}", err=True)


def _existing(queue: str | None, transport: str | None) -> dict[DeadQueue, int]:
    """The queues that a person means and that exist, with their depth."""
    from pillarbox.ops.broker_queues import chosen_queues, existing

    quiet_drivers()
    settings = current_settings()
    found = asyncio.run(existing(settings, chosen_queues(settings, queue=queue, transport=transport)))
    if queue is not None and not found:
        raise NotFound(f"there is no queue {queue!r} on the broker")
    return found


def _figures(letter: BrokerLetter, *, bodies: bool) -> dict[str, object]:
    figures = exports.broker_letter(letter)
    return figures | exports.carried(letter.body, letter.content_type or "") if bodies else figures


def _print(found: Sequence[BrokerLetter], *, bodies: bool) -> None:
    columns = ["queue", "given up", "event", "type", "came from", "attempts", "bytes", "reason"]
    rows = [
        [
            x.queue,
            x.died_at,
            x.event_id,
            x.event_type,
            x.came_from,
            x.attempts,
            x.size,
            x.reason,
            exports.readable(x.body),
        ]
        for x in found
    ]
    width = len(columns) + bodies
    print_table([*columns, "payload"][:width], [row[:width] for row in rows])


def _report(tally: Tally, wish: Wish, *, as_json: bool) -> None:
    missing = [event_id for event_id in wish.event_ids if event_id not in tally.found]
    if as_json:
        print_json(
            {
                "matched": tally.matched,
                "done": 0 if wish.dry_run else tally.done,
                "moved": dict(tally.moved),
                "stayed": tally.stayed,
                "missing": missing,
                "dry_run": wish.dry_run,
            }
        )
    else:
        _tell(tally, wish)
    if tally.lost is not None:
        raise tally.lost
    if tally.stayed:
        raise SystemExit(FAILURE)
    if missing:
        raise NotFound(f"no dead letter of {', '.join(map(repr, missing))} lies there")


def _tell(tally: Tally, wish: Wish) -> None:
    words = "would requeue" if wish.dry_run else "requeued"
    if tally.moved:
        places = ", ".join(f"{clean(queue)} ({count:,})" for queue, count in tally.moved.items())
        click.echo(f"{words}: {_letters(tally.done)} to {places}")
    elif not wish.event_ids:
        click.echo(f"{words}: none" if tally.matched else "no dead letter lies on the broker")
    for reason, event_ids in tally.stayed.items():
        named = ", ".join(map(clean, event_ids[:SHOWN])) + (", …" if len(event_ids) > SHOWN else "")
        click.echo(
            f"pillarbox: {_letters(len(event_ids))} stay{'s' * (len(event_ids) == 1)} ({named}): {clean(reason)}",
            err=True,
        )
    if not wish.event_ids and tally.lost is None and (left := wish.most - tally.matched) > 0:
        click.echo(f"pillarbox: {left:,} more were not looked at, or somebody else took them", err=True)


def _letters(count: int) -> str:
    return plural(count, "dead letter")
