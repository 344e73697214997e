"""Dead letters on Redis are listed in order, and moved back to the group that rejected them, without loss."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from pillarbox import RejectedError, UnavailableError
from pillarbox.core.errors import NackedError
from pillarbox.testing.conformance.sources.receive import take, taken_ids
from pillarbox.transports.redis import RedisDeadLetters
from tests.integration.rabbitmq.proxy import Proxy
from tests.integration.redis.conftest import MakeSource
from tests.integration.redis.reading import ids
from tests.servers.redis import RedisServer


@pytest.fixture
async def dead(redis_server: RedisServer) -> AsyncIterator[RedisDeadLetters]:
    dead_letters = RedisDeadLetters(redis_server.url())
    yield dead_letters
    await dead_letters.aclose()


async def rejected(server: RedisServer, consume: MakeSource, stream: str, count: int) -> str:
    """Reject that many messages in the group `billing`, and return the name of the dead-letter stream."""
    with server.client() as client:
        for number in range(count):
            client.xadd(stream, {"id": f"e{number}", "type": "t", "content_type": "text/x", "body": b"\xff\x00"})
    source = consume(group="billing")
    for number in range(count):
        await (await take(source)).reject(f"reason {number}")
    return f"{stream}.dlq"


async def test_dead_letters_are_listed_in_order_with_their_reason(
    redis_server: RedisServer, dead: RedisDeadLetters, consume: MakeSource, stream: str
) -> None:
    queue = await rejected(redis_server, consume, stream, 150)
    async with dead.receive(queue, limit=120, prefetch=200) as messages:
        found = [received.dead_letter async for received in messages]
    assert [one.event_id for one in found] == [f"e{n}" for n in range(120)]
    first = found[0]
    assert (first.reason, first.attempts, first.event_type) == ("reason 0", 1, "t")
    assert (first.body, first.size, first.content_type) == (b"\xff\x00", 2, "text/x")
    assert first.original_queue == f"{stream}.billing.retry"
    assert first.dead_lettered_at is not None
    assert await dead.depth(queue) == 150
    async with dead.receive(queue, limit=120, prefetch=7) as messages:
        assert len([received async for received in messages]) == 7


async def test_a_moved_dead_letter_is_delivered_once_more_to_its_own_group(
    redis_server: RedisServer, dead: RedisDeadLetters, consume: MakeSource, stream: str
) -> None:
    queue = await rejected(redis_server, consume, stream, 3)
    async with dead.receive(queue, limit=3, prefetch=3) as messages:
        async for received in messages:
            if received.dead_letter.event_id == "e1":
                await received.move(str(received.dead_letter.original_queue))
    assert ids(redis_server, queue) == ["e0", "e2"]
    again = await take(consume(group="billing"))
    assert (again.incoming.event_id, again.incoming.attempts) == ("e1", 1)
    assert await taken_ids(consume(group="search"), 3) == ["e0", "e1", "e2"], "as they were sent, and no more"


async def test_of_two_operators_one_moves_a_dead_letter(
    redis_server: RedisServer, dead: RedisDeadLetters, consume: MakeSource, stream: str
) -> None:
    queue = await rejected(redis_server, consume, stream, 1)
    async with dead.receive(queue, limit=1, prefetch=1) as one, dead.receive(queue, limit=1, prefetch=1) as other:
        first, second = [received async for received in one] + [received async for received in other]
        results = await asyncio.gather(first.move(stream), second.move(stream), return_exceptions=True)
    assert [type(result) for result in results] == [type(None), RejectedError]
    assert ids(redis_server, stream) == ["e0", "e0"]


async def test_a_dead_letter_that_cannot_be_moved_stays(
    private_redis: RedisServer, consume: MakeSource, stream: str
) -> None:
    with private_redis.client() as client:
        client.xadd(f"{stream}.dlq", {"id": "e0"})
        client.xadd(stream, {"id": "other"})
    dead = RedisDeadLetters(private_redis.url())
    try:
        async with dead.receive(f"{stream}.dlq", limit=1, prefetch=1) as messages:
            [received] = [one async for one in messages]
            with pytest.raises(RejectedError, match="no stream"):
                await received.move(f"{stream}-missing")
            with private_redis.client() as client:
                client.config_set("maxmemory", 1)
            with pytest.raises(NackedError):
                await received.move(stream)
            with private_redis.client() as client:
                client.config_set("maxmemory", 0)
        assert (received.dead_letter.reason, received.dead_letter.original_queue) == (None, None)
    finally:
        await dead.aclose()
    assert ids(private_redis, f"{stream}.dlq") == ["e0"]


async def test_the_depth_of_a_missing_an_empty_and_a_wrong_key(
    redis_server: RedisServer, dead: RedisDeadLetters, stream: str
) -> None:
    assert await dead.depth(stream) is None
    with redis_server.client() as client:
        client.xgroup_create(stream, "any", mkstream=True)
        client.set(f"{stream}-text", "not a stream")
    assert await dead.depth(stream) == 0
    with pytest.raises(RejectedError, match="WRONGTYPE"):
        await dead.depth(f"{stream}-text")


async def test_an_unreachable_server_is_unavailable(proxy: Proxy, proxied: str, stream: str) -> None:
    dead = RedisDeadLetters(proxied)
    assert await dead.depth(stream) is None
    await proxy.cut()
    for _ in range(2):
        with pytest.raises(UnavailableError):
            await dead.depth(stream)
    await proxy.heal()
    assert await dead.depth(stream) is None
    await dead.aclose()
