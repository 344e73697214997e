"""`pillarbox dead broker`: list and requeue dead letters in the queues of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from pillarbox.core.errors import PillarboxError
from pillarbox.core.text import plural
from pillarbox.ops import exports
from pillarbox.ops.cli.context import current_settings, quiet_drivers
from pillarbox.ops.cli.exits import FAILURE, NotFoundError, confirm, dry_run_option, yes_option
from pillarbox.ops.cli.output import as_json, clean, print_json, print_table, progress
from pillarbox.ops.cli.parameters import limit_option

if TYPE_CHECKING:
    from pillarbox.admin.broker_dead_letters import BrokerDeadLetter
    from pillarbox.ops.broker_queues import DeadQueue
    from pillarbox.ops.requeue import RequeuePlan, RequeueResult

F = TypeVar("F", bound=Callable[..., object])

MANY_DELIVERIES = 10
"""Deliveries after which a dead letter comes near the delivery limit of its queue."""
SHOWN = 5
"""Event ids that are named of skipped dead letters."""


def queue_options(command: F) -> F:
    """Add the options that select dead-letter queues."""
    for option in (
        click.option("--transport", metavar="NAME", help="Broker transport, if there are several."),
        click.option("--queue", metavar="NAME", help="Only this queue; default: all queues of the settings."),
    ):
        command = option(command)
    return command


@click.group()
def broker() -> None:
    """List dead letters on a broker, and move them back to their queues.

    The queues are those that the settings name as dead_letter of a queue, and NAME.dlq for every other queue NAME,
    where a Consumer puts its dead letters.

    \b
    Examples:
      pillarbox dead broker list
      pillarbox dead broker requeue --event-id evt-001
      pillarbox dead broker requeue --queue orders.dlq --all --dry-run
    """


@broker.command("list")
@queue_options
@limit_option
@click.option("--payload", "bodies", is_flag=True, help="Show the payloads, too.")
@as_json
def list_(queue: str | None, transport: str | None, limit: int, bodies: bool, as_json: bool) -> None:
    """List dead letters on a broker in the order of their queue, with the reason and the queue they came from.

    On RabbitMQ the command receives them and returns them in their order: no other consumer can receive them while it
    runs, and afterwards they are marked as redelivered. On Kafka, NATS and Redis it only reads.

    \b
    Example:
      pillarbox dead broker list --queue orders.dlq --limit 10 --payload
    """

    from pillarbox.ops.broker_queues import first_dead_letters

    queues = _existing(queue, transport)
    found = asyncio.run(first_dead_letters(current_settings(), queues, limit=limit, bodies=bodies))
    if as_json:
        print_json({"dead_letters": [_as_object(dead_letter, bodies=bodies) for dead_letter in found]})
    elif found:
        _print(found, bodies=bodies)
    else:
        click.echo("there are no dead letters on the broker", err=True)
    if often := sum(dead_letter.delivery_count >= MANY_DELIVERIES for dead_letter in found):
        click.echo(
            f"pillarbox: {often:,} of them were delivered {MANY_DELIVERIES} times or more; a queue with a delivery "
            "limit (20 since RabbitMQ 4) drops messages above it: requeue them, or set the policy delivery-limit to -1",
            err=True,
        )


@broker.command("requeue")
@queue_options
@click.option("--event-id", "event_ids", multiple=True, metavar="ID", help="Only this event; repeatable.")
@click.option("--all", "every", is_flag=True, help="All dead letters in the queues.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="The first N.")
@click.option("--to", metavar="QUEUE", help="Move them to this queue; default: the queue each came from.")
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
    """Move dead letters on a broker back to the queues they came from, where a Consumer makes one more attempt.

    Kafka cannot delete a message: its dead letters are listed only, and skipped here.

    The broker confirms each message in its queue before the command deletes it from the dead letters. If the command is
    killed in between, the message is in both queues and is delivered twice; the inbox detects the duplicate.

    \b
    Examples:
      pillarbox dead broker requeue --event-id evt-001 --event-id evt-002
      pillarbox dead broker requeue --queue orders.dlq --limit 10 --dry-run
      pillarbox dead broker requeue --all --yes
    """
    from pillarbox.ops import requeue

    if sum((bool(event_ids), every, limit is not None)) != 1:
        raise click.UsageError("Give exactly one of --event-id ID, --limit N and --all.")
    if to is not None and (queue is None or to in ("", queue)):
        raise click.UsageError("--to needs --queue, the dead-letter queue, and must name another queue.")
    queues = _existing(queue, transport)
    count = min(sum(queues.values()), limit or sum(queues.values()))
    if count and not (dry_run or event_ids):
        confirm(f"Requeue {_count(count)}?", yes=yes)
    plan = requeue.RequeuePlan(event_ids=event_ids, most=count, to=to, dry_run=dry_run)
    with progress("requeueing", size=None if event_ids else count) as advance:
        result = asyncio.run(
            requeue.requeue(current_settings(), queues, plan, on_each=lambda: advance(amount=1, events=1))
        )
    if result.done and not dry_run:
        _audit(queues, result)
    _report(result, plan, as_json=as_json)


def _audit(queues: Iterable[DeadQueue], result: RequeueResult) -> None:
    """Add an entry to the audit log, if there is a store: a consumer may have none."""
    from pillarbox.ops.cli.store_access import operator, with_shared_store

    named = ", ".join(queue.name for queue in queues)
    detail = {"moved": dict(result.moved), "remaining": sum(map(len, result.skipped.values()))}
    try:
        with_shared_store(
            lambda store: store.admin.audit.add("requeue", named, count=result.done, detail=detail, by=operator())
        )
    except PillarboxError as error:
        click.echo(f"pillarbox: the action is not in the audit log: {error}", err=True)


def _existing(queue: str | None, transport: str | None) -> dict[DeadQueue, int]:
    """Return the selected queues that exist, with their depth."""
    from pillarbox.ops.broker_queues import chosen_queues, existing

    quiet_drivers()
    settings = current_settings()
    found = asyncio.run(existing(settings, chosen_queues(settings, queue=queue, transport=transport)))
    if queue is not None and not found:
        raise NotFoundError(f"the broker has no queue {queue!r}")
    return found


def _as_object(dead_letter: BrokerDeadLetter, *, bodies: bool) -> dict[str, object]:
    record = exports.broker_dead_letter(dead_letter)
    return record | exports.carried(dead_letter.body, dead_letter.content_type or "") if bodies else record


def _print(found: Sequence[BrokerDeadLetter], *, bodies: bool) -> None:
    columns = ["queue", "dead-lettered", "event", "type", "came from", "attempts", "bytes", "reason"]
    rows = [
        [
            x.queue,
            x.dead_lettered_at,
            x.event_id,
            x.event_type,
            x.original_queue,
            x.attempts,
            x.size,
            x.reason,
            exports.readable(x.body),
        ]
        for x in found
    ]
    width = len(columns) + bodies
    print_table([*columns, "payload"][:width], [row[:width] for row in rows])


def _report(result: RequeueResult, plan: RequeuePlan, *, as_json: bool) -> None:
    missing = [event_id for event_id in plan.event_ids if event_id not in result.found]
    if as_json:
        print_json(
            {
                "matched": result.matched,
                "done": 0 if plan.dry_run else result.done,
                "moved": dict(result.moved),
                "skipped": result.skipped,
                "missing": missing,
                "dry_run": plan.dry_run,
            }
        )
    else:
        _print_result(result, plan)
    if result.error is not None:
        raise result.error
    if result.skipped:
        raise SystemExit(FAILURE)
    if missing:
        raise NotFoundError(f"{', '.join(map(repr, missing))}: no dead letters; see `pillarbox dead broker list`")


def _print_result(result: RequeueResult, plan: RequeuePlan) -> None:
    words = "would requeue" if plan.dry_run else "requeued"
    if result.moved:
        places = ", ".join(f"{clean(queue)} ({count:,})" for queue, count in result.moved.items())
        click.echo(f"{words}: {_count(result.done)} to {places}")
    elif not plan.event_ids:
        click.echo(f"{words}: none" if result.matched else "there are no dead letters on the broker")
    for reason, event_ids in result.skipped.items():
        named = ", ".join(map(clean, event_ids[:SHOWN])) + (", …" if len(event_ids) > SHOWN else "")
        click.echo(
            f"pillarbox: skipped {_count(len(event_ids))} ({named}): {clean(reason)}",
            err=True,
        )
    if not plan.event_ids and result.error is None and (left := plan.most - result.matched) > 0:
        click.echo(f"pillarbox: {left:,} more were not read, or another consumer received them", err=True)


def _count(count: int) -> str:
    return plural(count, "dead letter")
