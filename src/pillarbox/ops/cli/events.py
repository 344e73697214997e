"""`pillarbox events`: list pending, delivered and dead-lettered events, and show one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pillarbox.admin.listing import EventDetail, EventFilter, EventPage, EventReport, Position
from pillarbox.core.message import Status
from pillarbox.ops import exports
from pillarbox.ops.cli.events_erase import erase
from pillarbox.ops.cli.events_requests import discard, reschedule, retry
from pillarbox.ops.cli.exits import NotFoundError
from pillarbox.ops.cli.output import as_json, clean, print_facts, print_json, print_table, span
from pillarbox.ops.cli.parameters import event_options, limit_option, position
from pillarbox.ops.formatting import format_latency

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore
    from pillarbox.admin.keys import FirstPending
    from pillarbox.ops.health import DestinationView


@click.group()
def events() -> None:
    """List, count and show events; retry, reschedule and discard pending ones; erase aggregates.

    \b
    Examples:
      pillarbox events count
      pillarbox events list --state blocked --since 1h
      pillarbox events list --key ORDER:42 --json
      pillarbox events show 0193c2f0-6b1e-7c3a-9f57-3c1d2e4f5a6b
    """


events.add_command(retry)
events.add_command(reschedule)
events.add_command(discard)
events.add_command(erase)


@events.command("list")
@click.option(
    "--status",
    type=click.Choice([status.value for status in Status], case_sensitive=False),
    help="List only events in this status, which combines several states; default: all.",
)
@event_options
@limit_option
@click.option("--after", type=position, metavar="CURSOR", help="Continue after the previous page.")
@as_json
def list_(
    status: str | None,
    limit: int,
    after: Position | None,
    as_json: bool,
    **chosen: Any,
) -> None:
    """List events by the time of recording, the newest first.

    \b
    Examples:
      pillarbox events list --state retrying
      pillarbox events list --type order.placed --since 2026-11-30T09:00:00Z --limit 500
    """
    from pillarbox.ops.cli.store_access import with_shared_store

    wanted = EventFilter(status=None if status is None else Status(status.upper()), **chosen)
    page = with_shared_store(lambda store: _page(store, wanted, limit=limit, after=after))
    if as_json:
        listed = [exports.listed_event(event) for event in page.events]
        print_json({"events": listed, "after": None if page.after is None else str(page.after)})
        return
    if not page.events:
        click.echo("no matching events", err=True)
        return
    print_table(
        ["recorded", "event", "type", "key", "destination", "state", "retries", "next retry", "error"],
        [
            [
                event.recorded_at,
                event.event_id,
                event.event_type,
                event.key,
                event.destination,
                event.state.label,
                event.retry_count,
                event.next_retry_at,
                event.last_error,
            ]
            for event in page.events
        ],
    )
    if page.after is not None:
        click.echo(f"for the next page: --after '{page.after}'", err=True)


@events.command()
@as_json
def count(as_json: bool) -> None:
    """Count the events in each state.

    Beyond 10,000, a count is the estimate of the database, marked ~, or a lower bound.

    \b
    Examples:
      pillarbox events count
      pillarbox events count --json
    """
    from pillarbox.ops.cli.store_access import with_shared_store

    counts = with_shared_store(lambda store: store.admin.inspection.states())
    if as_json:
        print_json({"states": exports.state_counts(counts)})
    else:
        print_table(["state", "events"], [[state.label, count.text] for state, count in counts.items()])


async def _page(store: AdminStore, wanted: EventFilter, *, limit: int, after: Position | None) -> EventPage:
    """Read pages until there are `limit` rows: a filtered page may have fewer."""
    page = await store.admin.events.list(wanted, limit=limit, after=after)
    while page.after is not None and len(page.events) < limit:
        more = await store.admin.events.list(wanted, limit=limit - len(page.events), after=page.after)
        page = EventPage(page.events + more.events, more.after)
    return page


@events.command("show")
@click.argument("event_id")
@as_json
def show(event_id: str, as_json: bool) -> None:
    """Show one event, once for each destination, with its failed sends, open requests and what it waits for.

    \b
    Example:
      pillarbox events show evt-001 --json
    """
    from pillarbox.ops import waiting_reasons
    from pillarbox.ops.cli.store_access import with_shared_store

    async def read(store: AdminStore) -> tuple[EventReport, list[FirstPending], list[DestinationView]]:
        found = await store.admin.events.show(event_id)
        return (
            found,
            await waiting_reasons.earlier_events(store, found),
            await waiting_reasons.unavailable_destinations(store, found),
        )

    story, holding, unavailable = with_shared_store(read)
    if not story.events:
        raise NotFoundError(f"there is no event {event_id!r}; delivered events expire after relay.retention.history")
    if as_json:
        waits = {
            "waiting_for_events": [exports.first_pending(earlier) for earlier in holding],
            "waiting_for_destinations": [exports.held_by_destination(one) for one in unavailable],
        }
        print_json(as_object(event_id, story) | waits)
    else:
        print_report(story)
        for earlier in holding:
            click.echo(f"waiting for event {clean(earlier.event_id)} ({clean(earlier.event_type)})")
        for destination in unavailable:
            click.echo(f"waiting for {clean(waiting_reasons.waits_for(destination))}")


def as_object(event_id: str, story: EventReport) -> dict[str, object]:
    """Return an event and its failures as a JSON object."""
    return {
        "event_id": event_id,
        "events": [exports.event_detail(detail) for detail in story.events],
        "failures": [exports.failure(failed) for failed in story.failures],
        "requests": [exports.open_request(asked) for asked in story.requests],
    }


def print_report(story: EventReport) -> None:
    """Print an event and its failures."""
    for number, detail in enumerate(story.events):
        if number:
            click.echo()
        print_facts(_facts(detail))
    if story.requests:
        click.echo()
        print_table(
            ["requested at", "destination", "action", "delay", "by"],
            [
                [
                    r.requested_at,
                    r.destination,
                    r.action,
                    span(r.delay) if r.action == "reschedule" else "",
                    r.requested_by,
                ]
                for r in story.requests
            ],
        )
    if story.failures:
        click.echo()
        print_table(
            ["failed at", "destination", "attempt", "counted", "took", "error"],
            [
                [
                    f.attempted_at,
                    f.destination,
                    f.attempt,
                    "yes" if f.counted else "no",
                    format_latency(f.seconds),
                    f.error,
                ]
                for f in story.failures
            ],
        )


def _facts(detail: EventDetail) -> list[tuple[str, object]]:
    return [
        ("event", detail.event_id),
        ("state", detail.state.label),
        ("status", detail.status.value),
        ("type", detail.event_type),
        ("destination", detail.destination or "(not known yet)"),
        ("key", detail.key),
        ("aggregate", " ".join(part for part in (detail.aggregate_type, detail.aggregate_id) if part)),
        ("recorded", detail.recorded_at),
        ("occurred", detail.occurred_at),
        ("delivered", detail.published_at),
        ("delivered in", format_latency(detail.seconds)),
        ("dead letter", detail.dead_letter_id),
        ("first failed", detail.first_failed_at),
        ("dead-lettered", detail.dead_lettered_at),
        ("attempts", detail.attempts),
        ("retry count", detail.retry_count),
        ("next retry", detail.next_retry_at),
        ("last attempt", detail.last_attempt_at),
        ("last error", detail.last_error),
        ("in flight at", detail.locked_by),
        ("schema version", detail.schema_version),
        ("correlation", detail.correlation_id),
        ("causation", detail.causation_id),
        ("trace", detail.trace_id),
        *((f"header {clean(name)}", value) for name, value in detail.headers.items()),
        ("content type", detail.content_type),
        ("payload", exports.readable(bytes(detail.payload))),
    ]
