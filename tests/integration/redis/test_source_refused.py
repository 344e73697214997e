"""Retries and dead letters that Redis refuses wait in their consumer, and hold up no other message."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from pillarbox.testing.conformance.sources.receive import take
from pillarbox.testing.waiting import eventually
from tests.integration.redis.conftest import MakeSource
from tests.integration.redis.reading import entries, pending, put
from tests.servers.redis import RedisServer


async def test_a_retry_waits_for_memory_and_is_not_lost(
    private_redis: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(private_redis, stream, "a")
    source = consume(private_redis.url())
    delivery = await take(source)
    with private_redis.client() as client:
        client.config_set("maxmemory", 1)
        retrying = asyncio.create_task(delivery.retry(delay=0, reason="not yet"))
        await refused_again(private_redis, "OOM")
        assert not retrying.done()
        client.config_set("maxmemory", 0)
    await retrying
    again = await take(source)
    assert (again.incoming.event_id, again.incoming.attempts) == ("a", 1)


@pytest.mark.parametrize("key", ["{}.dlq", "{}.pillarbox.delayed", "{}.pillarbox.due"])
async def test_a_message_waits_while_its_destination_is_not_a_stream_and_the_others_do_not(
    redis_server: RedisServer, consume: MakeSource, stream: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    put(redis_server, stream, "a", "b")
    source = consume(check_interval="1h")
    delivery, other = await take(source), await take(source)
    wrong = key.format(stream)
    with redis_server.client() as client:
        client.hset(wrong, "not", "a stream")
        settle = delivery.reject("no") if wrong.endswith(".dlq") else delivery.retry(delay=0, reason="not yet")
        waiting = asyncio.create_task(settle)
        await refused_again(redis_server, "WRONGTYPE")
        assert not waiting.done()
        await other.ack()
        client.delete(wrong)
    await waiting
    assert pending(redis_server, stream) == []
    moved = [one for to in (".dlq", ".pillarbox.delayed") for one in entries(redis_server, f"{stream}{to}")]
    assert [one.text("id") for one in moved] == ["a"]
    [line] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "WRONGTYPE" in line


async def test_a_dead_letter_waits_while_its_stream_is_forbidden(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(redis_server, stream, "a", "b")
    with redis_server.client() as client:
        own = (f"~{stream}", f"~{stream}.pillarbox.*")
        client.execute_command("ACL", "SETUSER", stream, "on", ">secret", *own, "+@all")
        try:
            source = consume(f"redis://{stream}:secret@127.0.0.1:{redis_server.port}")
            delivery, other = await take(source), await take(source)
            rejecting = asyncio.create_task(delivery.reject("no"))
            await refused_again(redis_server, "NOPERM")
            assert not rejecting.done()
            await other.ack()
            client.execute_command("ACL", "SETUSER", stream, f"~{stream}.dlq")
            await rejecting
            await source.aclose()
        finally:
            client.acl_deluser(stream)
    assert [one.text("id") for one in entries(redis_server, f"{stream}.dlq")] == ["a"]


async def refused_again(server: RedisServer, code: str) -> None:
    """Wait until Redis has refused two more commands with this error."""
    with server.client() as client:

        async def count() -> int:
            stats: Any = (await asyncio.to_thread(client.info, "errorstats")).get(f"errorstat_{code}", {})
            return int(stats.get("count", 0))

        async def refused_twice() -> bool:
            return await count() >= before + 2

        before = await count()
        await eventually(refused_twice)
