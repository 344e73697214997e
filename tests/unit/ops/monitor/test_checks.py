"""Liveness, readiness and health: their conditions and texts."""

from __future__ import annotations

from typing import Any

import pytest

from pillarbox.admin.overview import LaneView, Overview, RelayView
from pillarbox.core.store import Override
from pillarbox.ops.monitor.checks import HealthLimits, alive, healthy, ready
from pillarbox.ops.monitor.snapshot import StoreSnapshot

QUIET = Overview(backlog=0, oldest=None, exact=True, dead=0, lanes=[LaneView(0, "a", 1, 0)], relays=[])
GONE = StoreSnapshot(overview=None, error="the store is unavailable")
LIMITS = HealthLimits(backlog=100, age=300.0)


def seen(**changes: Any) -> StoreSnapshot:
    return StoreSnapshot(overview=QUIET._replace(**changes))


@pytest.mark.parametrize(("silence", "yes"), [(None, True), (0.5, True), (60.0, True), (60.1, False)])
def test_a_relay_whose_loop_hangs_is_not_alive(silence: float | None, yes: bool) -> None:
    answer = alive(silence, limit=60.0)
    assert answer.yes is yes
    assert answer.facts["status"] == ("UP" if yes else "DOWN")


def test_a_relay_without_its_store_is_not_ready() -> None:
    assert ready(seen()).yes
    assert (ready(GONE).yes, ready(GONE).facts["reason"]) == (False, "the store is unavailable")


def test_a_relay_without_progress_is_not_ready() -> None:
    answer = ready(seen(), stalled="the store does not answer")
    assert (answer.yes, answer.facts["reason"]) == (False, "the relay makes no progress: the store does not answer")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, []),
        ({"backlog": 100, "oldest": 300.0}, []),
        ({"backlog": 101}, ["101 events are pending, more than relay.health.max_backlog (100)"]),
        ({"oldest": 301.0}, ["the oldest event is pending for 301 s, more than relay.health.max_age"]),
    ],
)
def test_a_backlog_or_age_beyond_the_limit_is_unhealthy(changes: dict[str, object], why: list[str]) -> None:
    answer = healthy(seen(**changes), LIMITS, queues={})
    assert (answer.yes, answer.facts["reasons"]) == (not why, why)


def test_both_limits_can_be_exceeded() -> None:
    why = healthy(seen(backlog=101, oldest=301.0), LIMITS, queues={}).facts["reasons"]
    assert isinstance(why, list)
    assert len(why) == 2


def test_without_limits_any_backlog_is_healthy() -> None:
    assert healthy(seen(backlog=10**9, oldest=1e9), HealthLimits(backlog=None, age=None), queues={}).yes


def test_without_a_store_health_is_down() -> None:
    assert (healthy(GONE, LIMITS, queues={}).yes, healthy(GONE, LIMITS, queues={}).facts["reasons"]) == (
        False,
        ["the store is unavailable"],
    )


def test_health_lists_paused_and_unavailable_destinations() -> None:
    relay = RelayView(id="a", name="", host="", lease=10.0, breakers={"orders": "open", "mail": "closed"})
    overview = QUIET._replace(backlog=3, oldest=1.5, dead=2, relays=[relay])
    paused = Override(destination="audit", paused=True, breaker=None, rate_limit=None, last_error=None)
    facts = healthy(StoreSnapshot(overview=overview, overrides=[paused]), LIMITS, queues={"orders.dlq": 4}).facts
    assert {name: facts[name] for name in ("backlog", "oldest_seconds", "exact", "dead_letters", "relays")} == {
        "backlog": 3,
        "oldest_seconds": 1.5,
        "exact": True,
        "dead_letters": 2,
        "relays": 1,
    }
    assert facts["breakers"] == {"audit": "paused", "mail": "closed", "orders": "open"}
    assert facts["dead_letter_queues"] == {"orders.dlq": 4}
    assert facts["flow"] == {"state": "degraded", "reason": "audit is paused by an operator. orders is unavailable."}
