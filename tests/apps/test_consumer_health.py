"""What a process that consumes says of its health."""

from __future__ import annotations

from apps.common.consuming import ConsumerHealth
from pillarbox.observations import (
    ConsumerStarted,
    ConsumerStopped,
    ConsumerStopRequested,
    EventHandled,
    SourceFailed,
)

FAILED = SourceFailed(consumer="a", error="connection refused", delay=1.0)
HANDLED = EventHandled(consumer="a", event_id="1", event_type="t", attempt=1, seconds=0.1)


async def test_it_is_up_while_every_consumer_runs() -> None:
    health = ConsumerHealth()
    assert not (await health.look())[0]
    for consumer in ("a", "b"):
        health(ConsumerStarted(consumer=consumer))
    assert await health.look() == (True, {"consumers": {"a": True, "b": True}, "lastSourceErrors": {}})
    health(ConsumerStopRequested(consumer="b"))
    assert await health.look() == (False, {"consumers": {"a": True, "b": False}, "lastSourceErrors": {}})
    health(ConsumerStarted(consumer="b"))
    health(ConsumerStopped(consumer="a", drained=True))
    assert not (await health.look())[0]


async def test_a_broker_that_is_away_is_shown_and_no_reason_to_start_anew() -> None:
    health = ConsumerHealth()
    health(ConsumerStarted(consumer="a"))
    health(FAILED)
    assert await health.look() == (True, {"consumers": {"a": True}, "lastSourceErrors": {"a": "connection refused"}})
    health(HANDLED)
    assert await health.look() == (True, {"consumers": {"a": True}, "lastSourceErrors": {}})
