"""Checks of a Redis server; they write nothing."""

import uuid
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from pillarbox.admin.diagnosis import CheckResult
from pillarbox.core.errors import UnavailableError
from pillarbox.testing.waiting import eventually
from pillarbox.transports.redis import RedisTransport
from pillarbox.transports.redis.diagnosis import RedisDiagnosis
from tests.integration.doctor.asking import ask
from tests.servers.availability import available
from tests.servers.ports import free_port
from tests.servers.redis import RedisServer


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A server whose configuration the tests change."""
    with available(RedisServer) as server:
        yield server


@pytest.fixture
def url(server: RedisServer) -> str:
    return server.url()


async def asked(check: str, address: str, **wanted: Any) -> CheckResult:
    async with aclosing(RedisDiagnosis(address, **wanted)) as diagnosis:
        return await ask(diagnosis.checks(), check)


def configure(server: RedisServer, **settings: str) -> None:
    with server.client() as client:
        for name, value in settings.items():
            client.config_set(name.replace("_", "-"), value)


async def test_a_server_is_named_with_its_version(url: str, server: RedisServer) -> None:
    found = await asked("transport.reachable", url)
    assert (found.result, found.message.split()[0], str(server.port) in found.message) == ("pass", "Redis", True)
    assert (await asked("transport.version", url)).result == "pass"


async def test_an_unreachable_server_or_a_rejected_login_fails(server: RedisServer) -> None:
    found = await asked("transport.reachable", f"redis://:secret@127.0.0.1:{free_port()}")
    assert (found.result, "secret" in str(found)) == ("fail", False)
    found = await asked("transport.reachable", f"redis://stranger:secret@127.0.0.1:{server.port}")
    assert (found.result, "WRONGPASS" in found.message, "secret" in str(found)) == ("fail", True, False)


@pytest.mark.parametrize(
    ("appendonly", "fsync", "result", "says"),
    [
        ("yes", "always", "pass", "on the disk"),
        ("yes", "everysec", "warn", "a crash of Redis"),
        ("yes", "no", "warn", "operating system"),
        ("no", "always", "warn", "a restart of the server loses"),
    ],
)
async def test_what_the_server_can_lose_is_said(
    url: str, server: RedisServer, appendonly: str, fsync: str, result: str, says: str
) -> None:
    configure(server, appendonly=appendonly, appendfsync=fsync)
    found = await asked("transport.durability", url)
    configure(server, appendonly="yes", appendfsync="always")
    assert (found.result, says in found.message, bool(found.fix)) == (result, True, result != "pass")


async def test_a_server_that_may_evict_streams_is_a_warning(url: str, server: RedisServer) -> None:
    assert (await asked("transport.memory", url)).result == "pass"
    configure(server, maxmemory_policy="allkeys-lru")
    found = await asked("transport.memory", url)
    configure(server, maxmemory_policy="noeviction")
    assert (found.result, "allkeys-lru" in found.message) == ("warn", True)


async def test_a_server_that_is_almost_full_is_a_warning(url: str, server: RedisServer) -> None:
    configure(server, maxmemory="1mb")
    found = await asked("transport.memory", url)
    configure(server, maxmemory="1gb")
    enough = await asked("transport.memory", url)
    configure(server, maxmemory="0")
    assert (found.result, enough.result) == ("warn", "pass")


async def test_missing_replicas_fail_if_events_wait_for_them(url: str) -> None:
    assert (await asked("transport.replicas", url)).result == "pass"
    found = await asked("transport.replicas", url, wait_replicas=1)
    assert (found.result, "0 replicas" in found.message) == ("fail", True)


async def test_a_replica_fails_and_its_master_warns_about_a_failover(url: str, server: RedisServer) -> None:
    with available(lambda: RedisServer(settings={"replicaof": f"127.0.0.1 {server.port}"})) as replica:
        found = await asked("transport.primary", replica.url())
        assert (found.result, "replica" in found.message) == ("fail", True)

        async def warned() -> bool:
            found = await asked("transport.replicas", url)
            return found.result == "warn" and "a failover loses the last ones" in found.message

        await eventually(warned)
    assert (await asked("transport.primary", url)).result == "pass"


async def test_what_a_managed_service_forbids_is_unknown_and_does_not_fail(server: RedisServer) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-config", "-info")
    address = f"redis://app:secret@127.0.0.1:{server.port}"
    found = {
        name: await asked(f"transport.{name}", address)
        for name in ("reachable", "version", "primary", "durability", "memory", "replicas", "destinations")
    }
    with server.client() as client:
        client.acl_deluser("app")
    assert {name: result.result for name, result in found.items()} == {
        "reachable": "pass",
        "version": "pass",
        "primary": "warn",
        "durability": "warn",
        "memory": "warn",
        "replicas": "warn",
        "destinations": "pass",
    }
    assert all("unknown" in result.message for result in found.values() if result.result == "warn")


async def test_a_destination_whose_key_is_no_stream_fails(url: str, server: RedisServer) -> None:
    name = f"doctor-{uuid.uuid4().hex[:12]}"
    with server.client() as client:
        client.set(name, "text")
    found = await asked("transport.destinations", url, addresses={"billing": RedisTransport.to(stream=name)})
    assert (found.result, "billing" in found.message, "is a string" in found.message) == ("fail", True, True)
    missing = RedisTransport.to(stream=f"{name}-missing", create_stream=False)
    found = await asked("transport.destinations", url, addresses={"billing": missing})
    assert (found.result, "no stream" in found.message) == ("fail", True)
    fine = {"by_type": RedisTransport.to(), "new": RedisTransport.to(stream=f"{name}-new")}
    assert (await asked("transport.destinations", url, addresses=fine)).result == "pass"
    with server.client() as client:
        assert client.exists(f"{name}-new", f"{name}-missing") == 0


async def test_a_destination_that_this_user_cannot_read_is_an_error_of_the_check(server: RedisServer) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "app", "on", ">secret", "~mine", "+@all")
    try:
        with pytest.raises(UnavailableError, match="NOPERM"):
            await asked(
                "transport.destinations",
                f"redis://app:secret@127.0.0.1:{server.port}",
                addresses={"billing": RedisTransport.to(stream="other")},
            )
    finally:
        with server.client() as client:
            client.acl_deluser("app")


async def test_a_server_that_takes_smaller_values_than_the_outbox_is_a_warning(url: str, server: RedisServer) -> None:
    configure(server, proto_max_bulk_len=str(2**20))
    found = await asked("transport.sizes", url, max_payload=2**20 + 1)
    assert (found.result, "proto-max-bulk-len is 1048576" in found.message) == ("warn", True)
    assert (await asked("transport.sizes", url)).result == "pass"
