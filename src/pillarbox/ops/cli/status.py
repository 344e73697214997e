"""`pillarbox status`: show whether events flow and, if not, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from pillarbox.admin.overview import Overview, RelayView
from pillarbox.core.statistics import COUNTED
from pillarbox.ops.cli import broker_depths
from pillarbox.ops.cli.exits import EXCEEDED, FAILURE
from pillarbox.ops.cli.output import as_json, clean, number, print_json, print_line, print_table, span
from pillarbox.ops.cli.parameters import age

if TYPE_CHECKING:
    from pillarbox.admin.admin import AdminStore
    from pillarbox.core.store import Override
    from pillarbox.ops.flow import DestinationView, Flow

_COLOURS = {"flowing": "green", "degraded": "yellow", "stopped": "red"}


@click.command()
@click.option("--check", is_flag=True, help="Exit with 3 unless events flow.")
@click.option("--max-age", type=age, metavar="DURATION", help="Exit with 3 if the oldest event is pending for longer.")
@click.option(
    "--max-broker-dead",
    type=click.IntRange(0),
    metavar="N",
    help="Exit with 3 if a dead-letter queue on RabbitMQ has more than N messages; 0: any.",
)
@as_json
def status(check: bool, max_age: float | None, max_broker_dead: int | None, as_json: bool) -> None:
    """Show whether events flow and, if not, why.

    Then show the backlog, destinations, relays and, if RabbitMQ is a transport, the depth of its dead-letter queues.
    The age is that of the oldest event that could have been sent; a delayed event ages from when it is due.

    \b
    Examples:
      pillarbox status
      pillarbox status --check
      pillarbox status --max-age 60s --max-broker-dead 0 --json
    """
    from pillarbox.core.clock import seconds
    from pillarbox.core.store import EVERYWHERE
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.store_access import with_shared_store
    from pillarbox.ops.flow import destinations_of, flow

    seen, overrides = with_shared_store(_read)
    met = {name for relay in seen.relays for name in relay.breakers}
    depths = broker_depths.read_depths(broker_depths.known_dead_queues(met, required=max_broker_dead is not None))
    destinations = destinations_of(seen.relays, overrides)
    paused = any(row.destination == EVERYWHERE and row.paused for row in overrides)
    answer = flow(seen, destinations, paused=paused, allowed=seconds(current_settings().console.slo))
    alarms = [*_halted(answer, check), *_too_old(seen, max_age), *broker_depths.too_many(depths, max_broker_dead)]
    unknown = [] if max_broker_dead is None else list(broker_depths.unknown(depths))
    if as_json:
        asked = check or max_age is not None or max_broker_dead is not None
        report = _as_object(seen, destinations, answer) | broker_depths.as_object(depths)
        print_json(report | ({"exceeded": bool(alarms)} if asked else {}))
    else:
        _print(seen, destinations, answer)
        broker_depths.print_depths(depths)
    for sentence in alarms + unknown:
        click.echo(f"pillarbox: {clean(sentence)}", err=True)
    if alarms or unknown:
        raise SystemExit(EXCEEDED if alarms else FAILURE)


def _halted(answer: Flow, check: bool) -> Iterator[str]:
    if check and answer.state != "flowing":
        yield f"{answer.state}: {answer.reason}"


def _too_old(seen: Overview, max_age: float | None) -> Iterator[str]:
    if max_age is not None and seen.oldest is not None and seen.oldest > max_age:
        yield f"the oldest event is pending for {span(seen.oldest)}, more than {span(max_age)}"


async def _read(store: AdminStore) -> tuple[Overview, list[Override]]:
    return await store.admin.inspection.overview(), await store.destinations.overrides()


def _as_object(seen: Overview, destinations: list[DestinationView], answer: Flow) -> dict[str, object]:
    return {
        "state": answer.state,
        "reason": answer.reason,
        "backlog": seen.backlog,
        "oldest_seconds": None if seen.oldest is None else round(seen.oldest, 3),
        "exact": seen.exact,
        "dead_letters": seen.dead,
        "blocked_keys": seen.blocked,
        "destinations": [
            {
                "name": destination.name,
                "state": destination.state,
                "forced": destination.forced,
                "last_error": destination.last_error,
                "rate_limit": destination.rate_limit,
            }
            for destination in destinations
        ],
        "lanes": [lane._asdict() for lane in seen.lanes],
        "relays": [_relay(relay) for relay in seen.relays],
    }


def _relay(relay: RelayView) -> dict[str, object]:
    return {
        "id": relay.id,
        "name": relay.name,
        "host": relay.host,
        "lease_seconds": round(relay.lease, 3),
        "breakers": dict(relay.breakers),
    }


def _print(seen: Overview, destinations: list[DestinationView], answer: Flow) -> None:
    from pillarbox.relay.routing import rate_text

    print_line(_sentence(seen, answer), colour=_COLOURS[answer.state])
    if destinations:
        print_table(
            ["destination", "state", "limit", "last error"],
            [[d.name, d.state, rate_text(d.rate_limit) if d.rate_limit else "", d.last_error] for d in destinations],
        )
    if seen.relays:
        lanes = Counter(lane.owner for lane in seen.lanes)
        print_table(
            ["relay", "host", "lanes", "lease"],
            [
                [r.name or r.id, r.host, lanes[r.id], f"{r.lease:.1f} s" if r.lease > 0 else "ended"]
                for r in seen.relays
            ],
        )


def _sentence(seen: Overview, answer: Flow) -> str:
    parts = [f"{_count(seen)} pending" if seen.backlog else "no pending events"]
    if seen.oldest is not None:
        parts.append(f"the oldest for {span(seen.oldest)}")
    if seen.dead:
        parts.append(f"{number(seen.dead, most=COUNTED)} dead")
    return f"{answer.state}: " + " ".join(part for part in (clean(answer.reason), ", ".join(parts)) if part)


def _count(seen: Overview) -> str:
    if seen.exact:
        return number(seen.backlog)
    return number(seen.backlog, most=COUNTED) if seen.backlog == COUNTED + 1 else f"about {number(seen.backlog)}"
