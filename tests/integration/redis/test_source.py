"""A stream as a source: crashed and slow consumers, lost connections, groups, a deleted stream."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from pillarbox import ConfigurationError, UnavailableError, open_source
from pillarbox.testing.conformance.sources.receive import take, take_through_outages, taken_ids
from pillarbox.testing.waiting import eventually
from pillarbox.transports.redis import RedisSource, scripts
from pillarbox.transports.redis.connection import RedisConnection
from pillarbox.transports.redis.plugin import RedisEndpoint
from pillarbox.transports.redis.scripts import ConsumerStreams
from pillarbox.transports.redis.session import RedisConsumerSession, SessionOptions
from tests.integration.rabbitmq.proxy import Proxy
from tests.integration.redis.conftest import MakeSource
from tests.integration.redis.reading import consumers, entries, pending, put
from tests.servers import processes
from tests.servers.redis import RedisServer

SCRIPT = Path(__file__).with_name("consumer_process.py")
Start = Callable[[int], "subprocess.Popen[str]"]


@pytest.fixture
def start(redis_server: RedisServer, stream: str) -> Iterator[Start]:
    """Processes that receive that many messages of the test's stream; killed when the test ends."""
    started: list[processes.Started] = []

    def start_one(count: int) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), redis_server.url(), stream, str(count)],
            env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(processes.Started(name="consumer", process=process, log=SCRIPT, ports=()))
        processes.registry.processes.append(started[-1])
        return process

    yield start_one
    for one in started:
        one.kill()
        one.process.wait(30)
        processes.forget(one)


async def test_messages_of_a_killed_consumer_are_delivered_to_another(
    redis_server: RedisServer, consume: MakeSource, stream: str, start: Start
) -> None:
    put(redis_server, stream, "a", "b")
    process = start(2)
    assert process.stdout is not None
    assert [await asyncio.to_thread(process.stdout.readline) for _ in range(2)] == ["a\n", "b\n"]
    process.kill()
    process.wait(30)
    process.stdout.close()
    source = consume(claim_after="100ms")
    received = [await take(source) for _ in range(2)]
    assert [one.incoming.event_id for one in received] == ["a", "b"]
    assert [one["times_delivered"] for one in pending(redis_server, stream)] == [2, 2]
    for one in received:
        await one.ack()
    assert pending(redis_server, stream) == []


async def test_messages_of_a_lost_connection_are_delivered_again_after_the_next_one(
    redis_server: RedisServer, consume: MakeSource, proxy: Proxy, proxied: str, stream: str
) -> None:
    """Not only after `claim_after`."""
    put(redis_server, stream, "a", "b")
    source = consume(proxied, claim_after="1h")
    assert [(await take(source)).incoming.event_id for _ in range(2)] == ["a", "b"]
    await proxy.reset()
    assert await taken_ids(source, 2) == ["a", "b"]
    assert pending(redis_server, stream) == []


@pytest.mark.parametrize("key", ["{}", "{}.pillarbox.retry"])
async def test_a_message_may_take_longer_than_the_reply_timeout_to_arrive(
    redis_server: RedisServer, consume: MakeSource, stream: str, key: str
) -> None:
    put(redis_server, key.format(stream), "a", text="x" * 400_000)
    async with Proxy(redis_server.port, reply_rate=200_000) as slow:
        source = consume(f"redis://127.0.0.1:{slow.port}", reply_timeout="500ms")
        assert (await take(source)).incoming.event_id == "a"


async def test_a_message_that_stops_arriving_ends_the_session(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(redis_server, stream, "a", text="x" * 400_000)
    with redis_server.client() as client:
        client.xgroup_create(stream, "pillarbox", 0)
    async with Proxy(redis_server.port, reply_rate=200_000) as slow:
        waiting = asyncio.create_task(consume(f"redis://127.0.0.1:{slow.port}", reply_timeout="200ms").receive())
        await eventually(lambda: asyncio.to_thread(pending, redis_server, stream))
        slow.silence()
        with pytest.raises(UnavailableError, match="did not reply"):
            await waiting


async def test_a_session_whose_reader_is_lost_does_not_start(redis_server: RedisServer, stream: str) -> None:
    endpoint = RedisEndpoint.parse(redis_server.url(), None)
    reader, control = (RedisConnection(endpoint, reply_timeout=10) for _ in range(2))
    await reader.open()
    await control.open()
    reader.abort(UnavailableError("it was lost before the session began"))
    await reader.closed.wait()
    options = SessionOptions(ConsumerStreams(stream, "pillarbox"), "pillarbox-1", 1, 30, 1, 10)
    session = RedisConsumerSession(reader, control, options)
    before = asyncio.all_tasks()
    with pytest.raises(UnavailableError, match="before the session began"):
        await session.start()
    session.abort(UnavailableError("the session was not started"))
    assert asyncio.all_tasks() == before


async def test_consumers_that_are_gone_are_deleted_unless_they_have_messages(
    redis_server: RedisServer, consume: MakeSource, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis would drop the pending messages of a deleted consumer."""
    put(redis_server, stream, "a")
    with redis_server.client() as client:
        client.xgroup_create(stream, "pillarbox", 0)
        for name in ("pillarbox-gone", "another"):
            client.xgroup_createconsumer(stream, "pillarbox", name)
        client.xreadgroup("pillarbox", "pillarbox-crashed", {stream: ">"})
        monkeypatch.setattr(scripts, "START", scripts.START.replace(f"> {scripts._FORGOTTEN}", "> -1"))
        source = consume(claim_after="1ms")
        assert (await take(source)).incoming.event_id == "a"
        left = [one["name"].decode() for one in client.xinfo_consumers(stream, "pillarbox")]
    assert "pillarbox-gone" not in left
    assert {"another", "pillarbox-crashed"} <= set(left)


async def test_retries_do_not_hold_up_new_messages(redis_server: RedisServer, consume: MakeSource, stream: str) -> None:
    put(redis_server, f"{stream}.pillarbox.retry", *(f"retry{n}" for n in range(20)))
    put(redis_server, stream, "new0", "new1")
    assert {"new0", "new1"} <= {*await taken_ids(consume(prefetch=1), 5)}


async def test_a_message_stays_with_a_slow_consumer(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(redis_server, stream, "slow")
    first, second = consume(claim_after="1s"), consume(claim_after="1s")
    held = await take(first)
    waiting = asyncio.create_task(second.receive())
    idle, restarts = 0, 0

    async def kept_for_longer() -> bool:
        nonlocal idle, restarts
        [one] = await asyncio.to_thread(pending, redis_server, stream)
        before, idle = idle, one["time_since_delivered"]
        restarts += idle < before
        return bool(restarts >= 4)  # three of them are claim_after

    await eventually(kept_for_longer)
    put(redis_server, stream, "next")
    assert (await waiting).incoming.event_id == "next"
    await held.ack()
    assert [one["times_delivered"] for one in pending(redis_server, stream)] == [1]


async def test_a_consumer_that_lost_its_message_to_another_cannot_retry_it(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(redis_server, stream, "a")
    slow = await take(consume(claim_after="1h"))
    other = await take(consume(claim_after="1ms"))
    assert other.incoming.event_id == "a"
    with pytest.raises(UnavailableError, match="another consumer"):
        await slow.retry(delay=0, reason="not yet")
    with pytest.raises(UnavailableError, match="acknowledged before"):
        await slow.reject("too late")
    await other.ack()
    assert pending(redis_server, stream) == []
    assert entries(redis_server, f"{stream}.pillarbox.delayed") == []
    assert entries(redis_server, f"{stream}.dlq") == []


@pytest.mark.parametrize("seed", range(3))
async def test_consumers_that_come_and_go_leave_no_message_behind(
    redis_server: RedisServer, consume: MakeSource, proxy: Proxy, proxied: str, stream: str, seed: int
) -> None:
    """No message is lost, whatever happens to its consumers. A message counts as processed before its acknowledgement,
    whose reply may be lost."""
    random = Random(seed)
    names = {f"e{n}" for n in range(200)}
    put(redis_server, stream, *names)
    processed: set[str] = set()
    rejected: set[str] = set()

    async def consume_some() -> None:
        while len(processed | rejected) < len(names):
            source = consume(random.choice((None, proxied)), claim_after="200ms", prefetch=random.randint(1, 20))
            with suppress(UnavailableError, TimeoutError):
                async with asyncio.timeout(0.5):
                    for _ in range(random.randint(1, 60)):
                        delivery = await source.receive()
                        name, chance = str(delivery.incoming.event_id), random.random()
                        if chance < 0.6:
                            processed.add(name)
                            await delivery.ack()
                        elif chance < 0.8:
                            await delivery.retry(delay=random.random() / 10, reason="again")
                        elif chance < 0.9:
                            rejected.add(name)
                            await delivery.reject("enough")
            await source.aclose()
            if random.random() < 0.1:
                await proxy.reset()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(consume_some())
    last = consume(claim_after="1ms", prefetch=1)
    while await asyncio.to_thread(remaining, redis_server, stream):  # such as those whose acknowledgement was lost
        delivery = await take(last)
        processed.add(str(delivery.incoming.event_id))
        await delivery.ack()
    dead = {one.text("id") for one in entries(redis_server, f"{stream}.dlq")}
    assert processed | dead == names
    assert dead <= rejected


def remaining(server: RedisServer, stream: str) -> int:
    """Messages that the group has not acknowledged."""
    with server.client() as client:
        [group] = client.xinfo_groups(stream)
        own = sum(client.xlen(f"{stream}.pillarbox.{name}") for name in ("delayed", "retry", "quarantine"))
        return int(group["pending"] + group["lag"] + own)


async def test_every_group_receives_every_message_and_only_its_own_retries(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(redis_server, stream, "a", "b")
    billing, search = consume(group="billing"), consume(group="search")
    await (await take(billing)).retry(delay=0, reason="not yet")
    assert await taken_ids(search, 2) == ["a", "b"]
    assert sorted(str(one) for one in await taken_ids(billing, 2)) == ["a", "b"]
    put(redis_server, stream, "last")
    assert await taken_ids(search, 1) == ["last"]
    assert len(entries(redis_server, stream)) == 3, "an acknowledged entry stays for groups that come later"
    assert entries(redis_server, f"{stream}.billing.retry") == []
    assert entries(redis_server, f"{stream}.billing.delayed") == []


async def test_streams_and_groups_with_dots_share_no_retries(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(redis_server, stream, "a")
    put(redis_server, f"{stream}.placed", "b")
    first = consume(group="placed.billing", check_interval="1h")
    second = consume(stream=f"{stream}.placed", group="billing")
    await (await take(first)).retry(delay=0, reason="not yet")
    await (await take(second)).retry(delay=0, reason="not yet")
    retried = [await take(one) for one in (second, consume(group="placed.billing"))]
    assert [one.incoming.event_id for one in retried] == ["b", "a"]
    assert len(entries(redis_server, f"{stream}.placed%2Ebilling.retry")) == 1


async def test_delayed_messages_survive_a_killed_server(
    private_redis: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(private_redis, stream, "a")
    source = consume(private_redis.url())
    await (await take(source)).retry(delay=0.5, reason="first")
    await asyncio.to_thread(private_redis.kill)
    await asyncio.to_thread(private_redis.start)
    again = await take_through_outages(source)
    assert (again.incoming.event_id, again.incoming.attempts) == ("a", 1)
    await again.ack()
    assert entries(private_redis, f"{stream}.pillarbox.retry") == []


async def test_a_deleted_stream_is_reported_and_consumed_again(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    source = consume()
    waiting = asyncio.create_task(source.receive())
    await eventually(lambda: asyncio.to_thread(_exists, redis_server, stream))
    with redis_server.client() as client:
        client.delete(stream)
    with pytest.raises(UnavailableError):
        await waiting
    put(redis_server, stream, "a")
    assert (await take_through_outages(source)).incoming.event_id == "a"


def _exists(server: RedisServer, stream: str) -> bool:
    with server.client() as client:
        return bool(client.exists(stream)) and bool(client.xinfo_groups(stream))


async def test_a_key_of_another_type_is_an_error_of_the_settings(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    with redis_server.client() as client:
        client.set(stream, "not a stream")
    with pytest.raises(ConfigurationError, match="not a stream"):
        await consume().receive()


@pytest.mark.parametrize("action", ["retry", "reject"])
async def test_a_message_with_thousands_of_fields_can_be_moved(
    redis_server: RedisServer, consume: MakeSource, stream: str, action: str
) -> None:
    put(redis_server, stream, "a", **{f"header:{n}": "x" for n in range(5_000)})
    source = consume()
    delivery = await take(source)
    assert len(delivery.incoming.headers) == 5_000
    if action == "reject":
        await delivery.reject("too many")
        [moved] = entries(redis_server, f"{stream}.dlq")
        assert (moved.text("id"), moved.text("pillarbox-reason")) == ("a", "too many")
    else:
        await delivery.retry(delay=0, reason="too many")
        again = await take(source)
        assert (again.incoming.event_id, again.incoming.attempts) == ("a", 1)


async def test_a_closed_source_leaves_no_consumer_behind(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(redis_server, stream, "a")
    source = consume()
    await (await take(source)).ack()
    assert consumers(redis_server, stream) == 1
    await source.aclose()
    assert consumers(redis_server, stream) == 0


async def test_a_user_without_administrative_commands_can_consume(
    redis_server: RedisServer, consume: MakeSource, stream: str
) -> None:
    put(redis_server, stream, "a", "b")
    with redis_server.client() as client:
        allowed = ("+@stream", "+@sortedset", "+@scripting", "+time")
        client.execute_command("ACL", "SETUSER", stream, "on", ">secret", f"~{stream}*", *allowed, "-@admin")
    try:
        source = consume(f"redis://{stream}:secret@127.0.0.1:{redis_server.port}")
        await (await take(source)).retry(delay=0, reason="not yet")
        assert sorted(str(one) for one in await taken_ids(source, 2)) == ["a", "b"]
        waiting = asyncio.create_task(source.receive())
        await asyncio.sleep(0)
        waiting.cancel()
        await source.aclose()
    finally:
        with redis_server.client() as client:
            client.acl_deluser(stream)


def test_settings_that_cannot_work_are_refused() -> None:
    for wrong in ({"prefetch": 0}, {"claim_after": 0}, {"check_interval": "0s"}, {"stream": ""}, {"group": ""}):
        with pytest.raises(ConfigurationError):
            RedisSource("redis://cache", **{"stream": "a", **wrong})  # type: ignore[arg-type]


async def test_a_source_is_opened_by_its_url(redis_server: RedisServer, stream: str) -> None:
    put(redis_server, stream, "a")
    source = open_source(redis_server.url(), stream, group="billing", prefetch=1)
    try:
        await (await take(source)).ack()
    finally:
        await source.aclose()
    assert pending(redis_server, stream, "billing") == []
