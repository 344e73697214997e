"""Entries that are trimmed before their messages are acknowledged: reported, unless their content is kept."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pillarbox.testing.conformance.sources.receive import take, taken_ids
from pillarbox.testing.waiting import eventually
from tests.integration.rabbitmq.proxy import Proxy
from tests.integration.redis.conftest import MakeSource
from tests.integration.redis.reading import consumers, entries, pending, put
from tests.servers.redis import RedisServer


async def test_entries_that_were_trimmed_while_pending_are_reported(
    redis_server: RedisServer, consume: MakeSource, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    put(redis_server, stream, "a", "b", "c")
    first = consume()
    for _ in range(3):
        await take(first)
    await first.aclose()
    ids = [one.entry_id for one in entries(redis_server, stream)]
    with redis_server.client() as client:
        client.xtrim(stream, maxlen=1, approximate=False)
    second = consume()
    with caplog.at_level(logging.WARNING, "pillarbox.redis"):
        assert await taken_ids(second, 1) == ["c"]
    assert second.deleted == 2
    [line] = [record.getMessage() for record in caplog.records]
    assert ids[0] in line
    assert ids[1] in line
    assert pending(redis_server, stream) == []


def trim(server: RedisServer, stream: str) -> None:
    with server.client() as client:
        client.xtrim(stream, maxlen=0, approximate=False)


async def forgotten(server: RedisServer, stream: str) -> None:
    """Wait until no entry is pending."""

    async def is_so() -> bool:
        return not await asyncio.to_thread(pending, server, stream)

    await eventually(is_so)


def reported(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "were deleted" in one.getMessage()]


async def test_messages_that_were_trimmed_before_a_reconnect_are_reported(
    redis_server: RedisServer,
    consume: MakeSource,
    proxy: Proxy,
    proxied: str,
    stream: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    put(redis_server, stream, "a", "b")
    source = consume(proxied, claim_after="1h")
    assert [(await take(source)).incoming.event_id for _ in range(2)] == ["a", "b"]
    trim(redis_server, stream)
    put(redis_server, stream, "c")
    await proxy.reset()
    assert await taken_ids(source, 1) == ["c"]
    assert source.deleted == 2
    assert len(reported(caplog)) == 1


async def test_messages_that_were_trimmed_before_their_source_is_closed_are_reported(
    redis_server: RedisServer, consume: MakeSource, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    put(redis_server, stream, "a")
    source = consume(claim_after="1h")
    await take(source)
    trim(redis_server, stream)
    await source.aclose()
    assert source.deleted == 1
    assert len(reported(caplog)) == 1
    assert consumers(redis_server, stream) == 0


async def test_messages_that_were_trimmed_in_flight_are_reported_unless_they_are_acknowledged(
    redis_server: RedisServer, consume: MakeSource, stream: str, caplog: pytest.LogCaptureFixture
) -> None:
    put(redis_server, stream, "a", "b", "c")
    source = consume(claim_after="100ms")
    first, second, _ = [await take(source) for _ in range(3)]
    [*_, last] = entries(redis_server, stream)
    trim(redis_server, stream)
    await forgotten(redis_server, stream)  # Redis drops them when their idle time is restarted
    await first.ack()
    await second.reject("no")
    assert reported(caplog) == []
    await source.aclose()
    assert source.deleted == 1
    [line] = reported(caplog)
    assert last.entry_id in line


async def test_a_message_that_was_trimmed_in_flight_can_be_retried(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(redis_server, stream, "a")
    source = consume(claim_after="100ms")
    delivery = await take(source)
    trim(redis_server, stream)
    await forgotten(redis_server, stream)  # Redis drops it when its idle time is restarted
    await delivery.retry(delay=0, reason="not yet")
    again = await take(source)
    assert (again.incoming.event_id, again.incoming.attempts) == ("a", 1)
