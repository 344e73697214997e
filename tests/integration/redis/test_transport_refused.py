"""What Redis refuses: which message or destination is at fault, and that the neighbours of a refused message arrive."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from pillarbox.core.errors import NackedError, PermanentError, UnavailableError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.redis import RedisTransport
from tests.integration.rabbitmq.proxy import Proxy
from tests.integration.redis.conftest import Batch, MakeTransport
from tests.integration.redis.reading import ids
from tests.servers.availability import available
from tests.servers.redis import RedisServer

_MIB = 1024 * 1024


async def test_a_message_for_a_key_of_another_type_leaves_its_neighbours_stored(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    with redis_server.client() as client:
        client.set(f"{stream}-text", "not a stream")
    wrong = outgoing("wrong", RedisTransport.to(stream=f"{stream}-text"))
    before, refused, after = await make().send([*batch(1, "before"), wrong, *batch(1, "after")])
    assert (before, after) == (None, None)
    assert type(refused) is UnavailableError
    assert "WRONGTYPE" in str(refused)
    assert ids(redis_server, stream) == ["before0", "after0"]


async def test_a_stream_that_cannot_be_used_defers_its_own_messages_if_the_destination_has_others(
    make: MakeTransport, redis_server: RedisServer, stream: str
) -> None:
    with redis_server.client() as client:
        client.set(f"{stream}-text", "not a stream")
    to = RedisTransport.to(stream="{event_type}")
    refused, stored = await make().send(
        [outgoing("wrong", to, event_type=f"{stream}-text"), outgoing("right", to, event_type=stream)]
    )
    assert type(refused) is NackedError
    assert stored is None


async def test_out_of_memory_refuses_messages_for_now_and_stores_exactly_the_accepted_ones(
    make: MakeTransport, private_redis: RedisServer, batch: Batch, stream: str
) -> None:
    transport = make(private_redis.url())
    sent = batch(60, body=bytes(20_000))
    assert await transport.send(batch(1, "first")) == [None]
    with private_redis.client() as client:
        used = client.info("memory")["used_memory"]
        client.config_set("maxmemory", used + 2 * _MIB)
        results = await transport.send(sent)
        rest = await transport.send(sent)
        client.config_set("maxmemory", 0)
    assert {type(result) for result in (*results, *rest)} == {type(None), NackedError}
    taken = [one.message.event_id for one, result in zip(sent * 2, [*results, *rest], strict=True) if result is None]
    assert ids(private_redis, stream) == ["first0", *taken]
    refused = [one for one, result in zip(sent, rest, strict=True) if result is not None]
    assert await transport.send(refused) == [None] * len(refused)


async def test_a_user_without_permission_for_one_stream_can_send_to_another(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    with redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", stream, "on", ">p/w", f"~{stream}", "+xadd")
    try:
        url = f"redis://{stream}:p%2Fw@127.0.0.1:{redis_server.port}"
        elsewhere = outgoing("b", RedisTransport.to(stream=f"{stream}-forbidden"))
        stored, refused = await make(url).send([*batch(1), elsewhere])
        assert stored is None
        assert type(refused) is UnavailableError
        assert "NOPERM" in str(refused)
        [wrong] = await make(url.replace("p%2Fw", "wrong")).send(batch(1))
        assert isinstance(wrong, UnavailableError)
        assert "WRONGPASS" in str(wrong)
        assert "wrong@" not in str(wrong)
    finally:
        with redis_server.client() as client:
            client.acl_deluser(stream)


async def test_a_user_without_the_command_time_cannot_trim_by_age(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    with redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", stream, "on", ">secret", "~*", "+@all", "-time")
    try:
        transport = make(f"redis://{stream}:secret@127.0.0.1:{redis_server.port}")
        by_length, by_age = await transport.send([*batch(1, max_length=5), *batch(1, "aged", max_age="1h")])
        assert by_length is None
        assert type(by_age) is UnavailableError
        assert "grant +time" in str(by_age)
        assert ids(redis_server, stream) == ["e0"]
    finally:
        with redis_server.client() as client:
            client.acl_deluser(stream)


async def test_a_server_that_needs_a_password_is_unavailable_without_it(
    make: MakeTransport, redis_server: RedisServer, batch: Batch
) -> None:
    with redis_server.client() as client:
        client.config_set("requirepass", "needed")
        try:
            [result] = await make().send(batch(1))
        finally:
            client.config_set("requirepass", "")
    assert type(result) is UnavailableError
    assert "NOAUTH" in str(result)


async def test_a_message_over_a_limit_that_cannot_be_read_fails_alone(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    """The server closes the connection over such a message; those behind it were not read."""
    with redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", stream, "on", ">secret", "~*", "+@all", "-config")
    try:
        transport = make(f"redis://{stream}:secret@127.0.0.1:{redis_server.port}")
        large = batch(1, "large", body=bytes(_MIB + 1))
        before, refused, *after = await transport.send([*batch(1, "before"), *large, *batch(2, "after")])
        assert before is None
        assert isinstance(refused, PermanentError)
        assert after == [None, None]
        assert ids(redis_server, stream) == ["before0", "after0", "after1"]
    finally:
        with redis_server.client() as client:
            client.acl_deluser(stream)


async def test_text_that_is_not_utf8_fails_alone(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    first, second, third = batch(3)
    results = await make().send([first, second._replace(headers={"name": "\ud800"}), third])
    assert [type(result) for result in results] == [type(None), PermanentError, type(None)]
    assert ids(redis_server, stream) == ["e0", "e2"]


async def test_a_server_that_loads_its_data_is_unavailable_until_it_has(
    make: MakeTransport, private_redis: RedisServer, batch: Batch, stream: str
) -> None:
    with private_redis.client() as client:
        client.mset({f"key-{n}": "x" * 100 for n in range(1000)})
        client.bgrewriteaof()

        async def rewritten() -> bool:
            return not client.info("persistence")["aof_rewrite_in_progress"]

        await eventually(rewritten)
    private_redis.stop()
    private_redis.settings |= {"key-load-delay": "2000", "loading-process-events-interval-bytes": "1024"}
    private_redis.spawn()
    transport = make(private_redis.url())
    [result] = await transport.send(batch(1))
    assert type(result) is UnavailableError
    assert "LOADING" in str(result)
    with pytest.raises(UnavailableError, match="LOADING"):
        await transport.ping()
    with private_redis.client() as client:
        client.config_set("key-load-delay", 0)

    async def accepted() -> bool:
        return await transport.send(batch(1)) == [None]

    await eventually(accepted)
    assert ids(private_redis, stream) == ["e0"]


async def test_a_server_that_cannot_persist_is_unavailable(
    make: MakeTransport, private_redis: RedisServer, batch: Batch
) -> None:
    os.mkdir(private_redis.folder / "dump.rdb")  # a snapshot cannot be renamed to a folder
    with private_redis.client() as client:
        client.config_set("save", "3600 1")
        client.bgsave()

        async def failed() -> bool:
            return bool(client.info("persistence")["rdb_last_bgsave_status"] == "err")

        await eventually(failed)
    [result] = await make(private_redis.url()).send(batch(1))
    assert type(result) is UnavailableError
    assert "MISCONF" in str(result)


@pytest.fixture
def replica(private_redis: RedisServer) -> Iterator[RedisServer]:
    """A replica of the private server, in step with it."""
    with available(lambda: RedisServer(settings={"replicaof": f"127.0.0.1 {private_redis.port}"})) as server:
        yield server


async def _in_step(master: RedisServer, replica: RedisServer) -> None:
    async def connected() -> bool:
        with master.client() as at_master, replica.client() as at_replica:
            known = at_master.info("replication").get("slave0", {})
            up = at_replica.info("replication").get("master_link_status") == "up"
            return bool(up and known and known["state"] == "online")

    await eventually(connected)


async def test_a_replica_stores_nothing_and_says_so(
    make: MakeTransport, private_redis: RedisServer, replica: RedisServer, batch: Batch, stream: str
) -> None:
    await _in_step(private_redis, replica)
    transport = make(replica.url())
    [result] = await transport.send(batch(1))
    assert type(result) is UnavailableError
    assert "READONLY" in str(result)
    with pytest.raises(UnavailableError, match="replica"):
        await transport.ping()
    with replica.client() as client:
        client.execute_command("REPLICAOF", "NO", "ONE")
    await transport.ping()
    assert await transport.send(batch(1)) == [None]


async def test_after_a_failover_it_connects_again_instead_of_staying_with_the_old_master(
    make: MakeTransport, private_redis: RedisServer, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    """A master that became a replica keeps its connections; the name of the server leads to the new master."""
    async with Proxy(private_redis.port) as proxy:
        transport = make(f"redis://127.0.0.1:{proxy.port}", connections=1)
        assert await transport.send(batch(1, "before")) == [None]
        with private_redis.client() as client:
            client.execute_command("REPLICAOF", "127.0.0.1", redis_server.port)
        [result] = await transport.send(batch(1, "during"))
        assert type(result) is UnavailableError
        assert "READONLY" in str(result)
        with pytest.raises(UnavailableError, match="replica"):
            await transport.ping()
        proxy.forward_to(redis_server.port)
        await transport.ping()
        assert await transport.send(batch(1, "after")) == [None]
        assert ids(redis_server, stream) == ["after0"]


async def test_without_the_replicas_that_were_asked_for_it_is_unknown_whether_a_message_is_safe(
    make: MakeTransport, private_redis: RedisServer, replica: RedisServer, batch: Batch, stream: str
) -> None:
    await _in_step(private_redis, replica)
    assert await make(private_redis.url(), wait_replicas=1, send_timeout="1min").send(batch(3, "safe")) == [None] * 3
    assert ids(replica, stream) == ["safe0", "safe1", "safe2"]
    replica.kill()
    results = await make(private_redis.url(), wait_replicas=1, send_timeout="1s").send(batch(3, "alone"))
    assert [type(result) for result in results] == [UnavailableError] * 3
    assert "0 of 1 replicas" in str(results[0])
    assert ids(private_redis, stream)[3:] == ["alone0", "alone1", "alone2"]


async def test_too_few_replicas_refuse_every_write(
    make: MakeTransport, private_redis: RedisServer, batch: Batch, stream: str
) -> None:
    with private_redis.client() as client:
        client.config_set("min-replicas-to-write", 1)
    results = await make(private_redis.url()).send(batch(2))
    assert [type(result) for result in results] == [UnavailableError] * 2
    assert "NOREPLICAS" in str(results[0])
    assert ids(private_redis, stream) == []


@pytest.mark.parametrize("lacking", [{"min-replicas-to-write": 1}, {"wait_replicas": 1, "send_timeout": "500ms"}])
async def test_a_master_without_its_replicas_is_left_for_the_one_that_its_name_leads_to(
    make: MakeTransport,
    private_redis: RedisServer,
    redis_server: RedisServer,
    batch: Batch,
    stream: str,
    lacking: dict[str, Any],
) -> None:
    async with Proxy(private_redis.port) as proxy:
        with private_redis.client() as client:
            client.config_set("min-replicas-to-write", lacking.pop("min-replicas-to-write", 0))
        transport = make(f"redis://127.0.0.1:{proxy.port}", connections=1, **lacking)
        [result] = await transport.send(batch(1, "before"))
        assert type(result) is UnavailableError
        proxy.forward_to(redis_server.port)
        await transport.send(batch(1, "after"))
        assert ids(redis_server, stream) == ["after0"]


async def test_a_deleted_stream_is_created_again_only_if_the_address_says_so(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    transport = make()
    assert await transport.send(batch(1)) == [None]
    with redis_server.client() as client:
        assert client.delete(stream) == 1
        [rejected] = await transport.send(batch(1, create_stream=False))
        assert "no stream" in str(rejected)
        assert not client.exists(stream)
    assert await transport.send(batch(1)) == [None]


async def test_what_was_stored_before_a_refused_message_is_not_safe_without_its_replicas(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    """The server closes the connection over the refused message, and never answers for its replicas."""
    with redis_server.client() as client:
        client.execute_command("ACL", "SETUSER", stream, "on", ">secret", "~*", "+@all", "-config")
    try:
        transport = make(f"redis://{stream}:secret@127.0.0.1:{redis_server.port}", wait_replicas=1, send_timeout="1s")
        large = batch(1, "large", body=bytes(_MIB + 1))
        before, refused, after = await transport.send([*batch(1, "before"), *large, *batch(1, "after")])
        assert type(before) is type(after) is UnavailableError
        assert isinstance(refused, PermanentError)
    finally:
        with redis_server.client() as client:
            client.acl_deluser(stream)
