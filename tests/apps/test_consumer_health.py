"""The health of a consumer process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from apps.runtime.consuming import ConsumerHealth
from pillarbox.observations import (
    ConsumerStarted,
    ConsumerStopped,
    ConsumerStopRequested,
    SourceFailed,
    SourceRestored,
)
from pillarbox.stores.sqlite import SqliteStore


@pytest.fixture
async def health(tmp_path: Path) -> AsyncIterator[ConsumerHealth]:
    async with aclosing(SqliteStore(tmp_path / "shop.db")) as store:
        await store.schema.apply()
        yield ConsumerHealth(store)


async def test_health_is_up_while_every_consumer_runs(health: ConsumerHealth) -> None:
    assert not (await health.check())[0]
    for consumer in ("a", "b"):
        health(ConsumerStarted(consumer=consumer))
    up, details = await health.check()
    assert (up, details["database"], details["consumers"]) == (True, "UP", {"a": True, "b": True})
    health(ConsumerStopRequested(consumer="b"))
    up, details = await health.check()
    assert (up, details["consumers"]) == (False, {"a": True, "b": False})
    health(ConsumerStarted(consumer="b"))
    health(ConsumerStopped(consumer="a", drained=True))
    assert not (await health.check())[0]


async def test_an_unavailable_broker_is_reported_and_keeps_the_process_up(health: ConsumerHealth) -> None:
    health(ConsumerStarted(consumer="a"))
    health(SourceFailed(consumer="a", error="connection refused", delay=1.0))
    up, details = await health.check()
    assert (up, details["lastSourceErrors"]) == (True, {"a": "connection refused"})
    health(SourceRestored(consumer="a", seconds=3.0))
    up, details = await health.check()
    assert (up, details["lastSourceErrors"]) == (True, {})


async def test_a_database_that_does_not_respond_is_down(tmp_path: Path) -> None:
    async with aclosing(SqliteStore(tmp_path / "empty.db")) as store:
        health = ConsumerHealth(store)
        health(ConsumerStarted(consumer="a"))
        up, details = await health.check()
    assert (up, details["database"]) == (False, "DOWN")
