"""`pillarbox status`: how the outbox fares, for people and for scripts."""

from __future__ import annotations

import json
from collections import Counter

import click

from pillarbox.core.overview import Overview, RelayView
from pillarbox.ops.cli.working import with_store


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def status(as_json: bool) -> None:
    """Show what waits, what was given up on, and which relays work.

    \b
    Example:
      pillarbox status --json
    """
    seen = with_store(lambda store: store.inspection.overview())
    click.echo(json.dumps(_figures(seen)) if as_json else _sentences(seen))


def _figures(seen: Overview) -> dict[str, object]:
    return {
        "backlog": seen.backlog,
        "oldest_seconds": None if seen.oldest is None else round(seen.oldest, 3),
        "exact": seen.exact,
        "dead": seen.dead,
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


def _sentences(seen: Overview) -> str:
    waiting = f"{'' if seen.exact else 'about '}{seen.backlog} waiting"
    age = "" if seen.oldest is None else f", the oldest for {seen.oldest:.1f} s"
    lanes = Counter(lane.owner for lane in seen.lanes)
    lines = [f"{waiting}{age}; {seen.dead} dead"]
    for relay in seen.relays:
        state = f"lease {relay.lease:.1f} s" if relay.lease > 0 else "dead"
        shut = [f"{name} {breaker}" for name, breaker in relay.breakers.items() if breaker != "closed"]
        lines.append(f"relay {relay.name or relay.id}: {lanes[relay.id]} lanes, {', '.join([state, *shut])}")
    if not seen.relays:
        lines.append("no relay is running: start one with `pillarbox relay`")
    return "\n".join(lines)
