"""`pillarbox status`: show whether events flow and, if not, why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from pillarbox.admin.overview import Overview, RelayView
from pillarbox.core.statistics import COUNTED
from pillarbox.ops import exports
from pillarbox.ops.cli import broker_depths
from pillarbox.ops.cli.exits import EXCEEDED, FAILURE
from pillarbox.ops.cli.output import as_json, clean, number, print_json, print_line, print_table, span
from pillarbox.ops.cli.parameters import age

if TYPE_CHECKING:
    from pillarbox.ops.health import Flow, HealthSnapshot

_COLOURS = {"flowing": "green", "degraded": "yellow", "stopped": "red"}


@click.command()
@click.option("--check", is_flag=True, help="Exit with 3 unless events flow.")
@click.option("--max-age", type=age, metavar="DURATION", help="Exit with 3 if the oldest event is pending for longer.")
@click.option(
    "--max-broker-dead",
    type=click.IntRange(0),
    metavar="N",
    help="Exit with 3 if a dead-letter queue on a broker has more than N messages; 0: fail if there is any.",
)
@as_json
def status(check: bool, max_age: float | None, max_broker_dead: int | None, as_json: bool) -> None:
    """Show whether events flow and, if not, why.

    Then show the backlog, destinations, relays and, if a broker is a transport, the depth of its dead-letter queues.
    The age is that of the oldest event that could have been sent; a delayed event ages from when it is due.

    \b
    Examples:
      pillarbox status
      pillarbox status --check
      pillarbox status --max-age 60s --max-broker-dead 0 --json
    """
    from pillarbox.core.clock import seconds
    from pillarbox.ops.cli.context import current_settings
    from pillarbox.ops.cli.store_access import with_shared_store
    from pillarbox.ops.health import take_snapshot

    allowed = seconds(current_settings().console.slo)
    health = with_shared_store(lambda store: take_snapshot(store, allowed=allowed))
    seen, answer = health.overview, health.flow
    destinations = {name for relay in seen.relays for name in relay.breakers}
    depths = broker_depths.read_depths(
        broker_depths.known_dead_queues(destinations, required=max_broker_dead is not None)
    )
    alarms = [*_halted(answer, check), *_too_old(seen, max_age), *broker_depths.too_many(depths, max_broker_dead)]
    unknown = [] if max_broker_dead is None else list(broker_depths.unknown(depths))
    if as_json:
        asked = check or max_age is not None or max_broker_dead is not None
        report = _as_object(health) | broker_depths.as_object(depths)
        print_json(report | ({"exceeded": bool(alarms)} if asked else {}))
    else:
        _print(health)
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


def _as_object(health: HealthSnapshot) -> dict[str, object]:
    return {
        "state": health.flow.state,
        "reason": health.flow.reason,
        "problems": [exports.problem(problem) for problem in health.flow.problems],
        **health.statistics(),
        "destinations": [exports.destination(destination) for destination in health.destinations],
        "lanes": [lane._asdict() for lane in health.overview.lanes],
        "relays": [_relay(relay) for relay in health.overview.relays],
    }


def _relay(relay: RelayView) -> dict[str, object]:
    return {
        "id": relay.id,
        "name": relay.name,
        "host": relay.host,
        "lease_seconds": round(relay.lease, 3),
        "breakers": dict(relay.breakers),
    }


def _print(health: HealthSnapshot) -> None:
    from pillarbox.relay.routing import rate_text

    seen, destinations, answer = health.overview, health.destinations, health.flow
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
