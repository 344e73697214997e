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
from pillarbox.core.text import plural
from pillarbox.ops.health import DEFAULT_SLO, HealthSnapshot
from pillarbox.ops.monitor.snapshot import StoreSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthLimits:
    """Limits of the health check."""

    backlog: int | None
    """Maximum number of pending events; None: no limit."""
    age: float | None
    """Maximum age of the oldest pending event in seconds; None: no limit."""
    allowed: float = DEFAULT_SLO
    """Seconds after which the state is `degraded`; the health check still passes."""


@dataclass(frozen=True, slots=True)
class HealthCheckResult:
    """The result of a check; `facts` is the JSON of the response."""

    yes: bool
    facts: dict[str, object]


def alive(silence: float | None, *, limit: float) -> HealthCheckResult:
    """Check that the relay's loop runs.

    silence: seconds since its last iteration; None: it has not started.
    """
    silent = silence is not None and silence > limit
    facts: dict[str, object] = {"status": "DOWN" if silent else "UP"}
    if silent:
        facts["reason"] = f"the relay loop has not run for {silence:.0f} s, more than relay.stall_limit"
    return HealthCheckResult(not silent, facts)


def ready(
    snapshot: StoreSnapshot, waiting_for: Mapping[str, str] = MappingProxyType({}), *, stalled: str = ""
) -> HealthCheckResult:
    """Check that the store is available with the right schema, and that the relay makes progress.

    waiting_for: what the relay has not reached since its start (the store or a transport → why); an unavailable broker
    does not make the relay unready. stalled: why the relay makes no progress although it could.
    """
    if snapshot.overview is None:
        return HealthCheckResult(False, {"status": "DOWN", "reason": snapshot.error})
    if stalled:
        return HealthCheckResult(False, {"status": "DOWN", "reason": f"the relay makes no progress: {stalled}"})
    missing: dict[str, object] = {"waiting_for": dict(waiting_for)} if waiting_for else {}
    return HealthCheckResult(True, {"status": "UP", **missing})


def healthy(snapshot: StoreSnapshot, limits: HealthLimits, *, queues: Mapping[str, int]) -> HealthCheckResult:
    """Check backlog and age against their limits, with further statistics; queues: the depths of dead-letter queues."""
    if snapshot.overview is None:
        return HealthCheckResult(False, {"status": "DOWN", "reasons": [snapshot.error]})
    exceeded = list(_exceeded(snapshot.overview, limits))
    facts = _statistics(snapshot, snapshot.overview, limits) | {"dead_letter_queues": dict(queues)}
    return HealthCheckResult(not exceeded, {"status": "DOWN" if exceeded else "UP", "reasons": exceeded, **facts})


def _exceeded(overview: Overview, limits: HealthLimits) -> Iterator[str]:
    if limits.backlog is not None and overview.backlog > limits.backlog:
        pending = plural(overview.backlog, "event is pending", "events are pending")
        yield f"{pending}, more than relay.health.max_backlog ({limits.backlog})"
    if limits.age is not None and overview.oldest is not None and overview.oldest > limits.age:
        yield f"the oldest event is pending for {overview.oldest:.0f} s, more than relay.health.max_age"


def _statistics(snapshot: StoreSnapshot, overview: Overview, limits: HealthLimits) -> dict[str, object]:
    health = HealthSnapshot.of(overview, snapshot.overrides, allowed=limits.allowed)
    return {
        "flow": {"state": health.flow.state, "reason": health.flow.reason},
        **health.statistics(),
        "breakers": {one.name: one.send_state for one in health.destinations},
        "relays": health.running_relays,
    }
