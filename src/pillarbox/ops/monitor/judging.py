"""Liveness, readiness and health of a process, and what a negative answer means.

    alive     no: restart the process; it does not recover by itself
    ready     no: the store is unavailable or has the wrong schema, and a restart does not help; or the relay makes no
              progress although it could, and gives the reason
    healthy   no: the backlog or the age of the oldest event exceeds its limit; alert an operator

An unavailable broker affects neither liveness nor readiness: events stay pending, and their age exceeds the limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from pillarbox.admin.overview import Overview
from pillarbox.core.store import EVERYWHERE
from pillarbox.core.text import plural
from pillarbox.ops.flow import LONG, destinations_of, flow
from pillarbox.ops.monitor.looking import Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits for the health check."""

    backlog: int | None
    """Maximum number of pending events; None: no limit."""
    age: float | None
    """Maximum age of the oldest pending event in seconds; None: no limit."""
    allowed: float = LONG
    """Seconds after which the state is `degraded`; the health check still passes."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a check; `facts` is the JSON of the response."""

    yes: bool
    facts: dict[str, object]


def alive(silence: float | None, *, limit: float) -> Answer:
    """silence: seconds since the last iteration of the relay's loop; None: it has not started."""
    silent = silence is not None and silence > limit
    facts: dict[str, object] = {"status": "DOWN" if silent else "UP"}
    if silent:
        facts["why"] = f"the relay loop has not run for {silence:.0f} s, more than relay.stall_limit"
    return Answer(not silent, facts)


def ready(seen: Seen, waits_for: Mapping[str, str] = MappingProxyType({}), *, stalled: str = "") -> Answer:
    """Whether the store can be reached and has the right tables, and the relay makes progress where it could; `stalled`
    tells why it does not. `waits_for` tells what the relay has not reached since its start (the store or a transport →
    why), and a broker that is missing does not make it unready."""
    if seen.overview is None:
        return Answer(False, {"status": "DOWN", "why": seen.error})
    if stalled:
        return Answer(False, {"status": "DOWN", "why": f"the relay makes no progress: {stalled}"})
    return Answer(True, {"status": "UP"} | ({"waits_for": dict(waits_for)} if waits_for else {}))


def healthy(seen: Seen, limits: Limits, *, queues: Mapping[str, int]) -> Answer:
    """Check backlog and age against their limits, with further statistics; queues: the depths of dead-letter queues."""
    if seen.overview is None:
        return Answer(False, {"status": "DOWN", "why": [seen.error]})
    wrong = list(_wrong(seen.overview, limits))
    facts = _statistics(seen, seen.overview, limits) | {"dead_letter_queues": dict(queues)}
    return Answer(not wrong, {"status": "DOWN" if wrong else "UP", "why": wrong, **facts})


def _wrong(overview: Overview, limits: Limits) -> Iterator[str]:
    if limits.backlog is not None and overview.backlog > limits.backlog:
        waits = plural(overview.backlog, "event is pending", "events are pending")
        yield f"{waits}, more than relay.health.max_backlog ({limits.backlog})"
    if limits.age is not None and overview.oldest is not None and overview.oldest > limits.age:
        yield f"the oldest event is pending for {overview.oldest:.0f} s, more than relay.health.max_age"


def _statistics(seen: Seen, overview: Overview, limits: Limits) -> dict[str, object]:
    destinations = destinations_of(overview.relays, seen.steering)
    paused = any(row.destination == EVERYWHERE and row.paused for row in seen.steering)
    answer = flow(overview, destinations, paused=paused, allowed=limits.allowed)
    return {
        "flow": {"state": answer.state, "why": answer.why},
        "backlog": overview.backlog,
        "oldest_seconds": None if overview.oldest is None else round(overview.oldest, 3),
        "exact": overview.exact,
        "dead": overview.dead,
        "blocked_keys": overview.blocked,
        "breakers": {one.name: one.state for one in destinations},
        "relays": sum(relay.lease > 0 for relay in overview.relays),
    }
