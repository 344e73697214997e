"""Messages that crashed their consumers: handled one at a time, and one after the other without a pause."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pillarbox.testing.conformance.sources.receive import take
from pillarbox.testing.waiting import eventually
from pillarbox.transports.redis import scripts
from tests.integration.redis.conftest import MakeSource
from tests.integration.redis.reading import pending, put
from tests.servers.redis import RedisServer


async def test_a_crash_counts_only_for_the_message_that_was_handled_alone(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(redis_server, stream, "poison", "b", "c")
    for _ in range(2):
        source = consume()
        assert sorted([str((await take(source)).incoming.event_id) for _ in range(3)]) == ["b", "c", "poison"]
        await source.aclose()  # three messages were in flight
    for crashes in range(4):
        source = consume()
        alone = await take(source)
        assert (alone.incoming.event_id, alone.quarantined, alone.crashes) == ("poison", True, crashes)
        await source.aclose()
    source = consume()
    poison = await take(source)
    next_one = asyncio.create_task(source.receive())
    put(redis_server, stream, "new")
    assert (await next_one).incoming.event_id == "new"
    await poison.reject("it crashes consumers")
    for name in ("b", "c"):
        alone = await take(source)
        assert (alone.incoming.event_id, alone.quarantined, alone.crashes) == (name, True, 0)
        await alone.ack()


def quarantine(server: RedisServer, stream: str, *ids: str) -> None:
    """Messages in quarantine whose consumer crashed."""
    key = f"{stream}.pillarbox.quarantine"
    put(server, key, *ids)
    with server.client() as client:
        client.xgroup_create(key, "pillarbox", 0)
        client.xreadgroup("pillarbox", "pillarbox-crashed", {key: ">"})
        abandoned = [one["message_id"] for one in pending(server, key)]
        client.xclaim(key, "pillarbox", "pillarbox-crashed", 0, abandoned, idle=scripts.ABANDONED)


def waits(server: RedisServer) -> bool:
    """Whether a consumer has waited for entries for more than a second."""
    with server.client() as client:
        clients: Any = client.client_list()
        return any(one["cmd"] == "xreadgroup" and int(one["idle"]) > 1 for one in clients)


async def test_a_consumer_waits_while_it_handles_a_message_of_quarantine(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    quarantine(redis_server, stream, "a", "b", "c")
    source = consume(check_interval="1h")
    assert (await take(source)).quarantined
    waiting = asyncio.create_task(source.receive())
    await eventually(lambda: asyncio.to_thread(waits, redis_server), within=20)
    waiting.cancel()


@pytest.mark.parametrize("action", ["ack", "reject"])
async def test_the_next_message_of_quarantine_is_delivered_at_once(
    redis_server: RedisServer, consume: MakeSource, stream: str, action: str
) -> None:
    """Not only after `check_interval`."""
    quarantine(redis_server, stream, "a", "b")
    source = consume(check_interval="1h")
    first = await take(source)
    waiting = asyncio.create_task(source.receive())
    await eventually(lambda: asyncio.to_thread(waits, redis_server), within=20)
    await (first.ack() if action == "ack" else first.reject("it crashes consumers"))
    async with asyncio.timeout(20):
        assert (await waiting).incoming.event_id == "b"
