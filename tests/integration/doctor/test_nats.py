"""Checks of NATS against the settings; they create nothing."""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from pillarbox.admin.diagnosis import CheckResult
from pillarbox.core.errors import PermanentError
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.nats import NatsTransport, Stream
from pillarbox.transports.nats.diagnosis import NatsDiagnosis
from tests.integration.doctor.asking import ask
from tests.integration.nats.conftest import delete_streams
from tests.integration.nats.streams import jetstream
from tests.servers.availability import available
from tests.servers.nats import NatsCluster, NatsServer
from tests.servers.ports import free_port


@pytest.fixture
def url(nats_server: NatsServer) -> str:
    return nats_server.url()


@pytest.fixture
def name(url: str) -> Iterator[str]:
    name = f"doctor-{uuid.uuid4().hex[:12]}"
    yield name
    asyncio.run(delete_streams(url, name))


async def asked(check: str, address: str, **wanted: Any) -> CheckResult:
    async with aclosing(NatsDiagnosis(address, **wanted)) as server:
        return await ask(server.checks(), check)


async def create(url: str, name: str, **config: Any) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, **({"subjects": [name]} | config))


async def test_a_server_is_named_with_its_version(url: str, nats_server: NatsServer) -> None:
    found = await asked("transport.reachable", url)
    assert (found.result, "NATS 2." in found.message, str(nats_server.port) in found.message) == ("pass", True, True)


async def test_an_unreachable_server_or_a_rejected_login_fails() -> None:
    found = await asked("transport.reachable", f"nats://app:secret@127.0.0.1:{free_port()}")
    assert (found.result, "secret" in found.message) == ("fail", False)
    with available(lambda: NatsServer(lines=["authorization { user: app, password: right }"])) as server:
        found = await asked("transport.reachable", server.url("app:secret@"))
    assert (found.result, "authorization" in found.message.lower(), "secret" in found.message) == ("fail", True, False)


async def test_jetstream_that_is_not_enabled_fails(url: str) -> None:
    assert (await asked("transport.jetstream", url)).result == "pass"
    with available(lambda: NatsServer(jetstream=False)) as server:
        found = await asked("transport.jetstream", server.url())
    assert (found.result, "JetStream" in found.fix) == ("fail", True)


async def test_a_subject_without_a_stream_fails_unless_it_is_created(url: str, name: str) -> None:
    fixed = {"orders": NatsTransport.to(subject=name)}
    for_each_key = {"orders": NatsTransport.to(subject=f"{name}.{{key}}")}
    assert (await asked("transport.destinations", url, addresses=fixed)).result == "pass"
    assert (await asked("transport.destinations", url, addresses=fixed, declare=False)).result == "fail"
    found = await asked("transport.destinations", url, addresses=for_each_key)
    assert (found.result, f"no stream has subject '{name}.>'" in found.message) == ("fail", True)
    wide = [Stream(name=name, subjects=[f"{name}.>"])]
    assert (await asked("transport.destinations", url, addresses=for_each_key, streams=wide)).result == "pass"
    await create(url, name, subjects=[f"{name}.>"])
    assert (await asked("transport.destinations", url, addresses=for_each_key, declare=False)).result == "pass"


async def test_a_subject_of_another_stream_than_the_expected_one_fails(url: str, name: str) -> None:
    await create(url, name)
    found = await asked(
        "transport.destinations", url, addresses={"o": NatsTransport.to(subject=name, expected_stream="ORDERS")}
    )
    assert (found.result, f"belongs to stream {name!r}, not to 'ORDERS'" in found.message) == ("fail", True)


async def test_a_stream_that_differs_from_the_settings_fails(url: str, name: str) -> None:
    wanted = [Stream(name=name, subjects=[name], max_age="1h")]
    assert (await asked("transport.topology", url, streams=wanted)).result == "pass"
    assert (await asked("transport.topology", url, streams=wanted, declare=False)).result == "warn"
    await create(url, name, max_age=60)
    found = await asked("transport.topology", url, streams=wanted)
    assert (found.result, "max_age 60s instead of 3600s" in found.message) == ("fail", True)
    assert (await asked("transport.topology", url, streams=wanted, declare=False)).result == "warn"


async def test_a_stream_that_discards_confirmed_messages_fails(url: str, name: str) -> None:
    await create(url, name, max_msgs=10)
    addresses = {"o": NatsTransport.to(subject=name)}
    assert (await asked("transport.overflow", url, addresses=addresses)).result == "fail"
    configured = [Stream(name=name, subjects=[name], max_msgs=10, discard="old")]
    assert (await asked("transport.overflow", url, streams=configured)).result == "warn"
    assert (await asked("transport.overflow", url)).result == "pass"


async def test_a_stream_that_keeps_one_message_per_subject_or_discards_without_consumers_is_found(
    url: str, name: str
) -> None:
    await create(url, name, max_msgs_per_subject=1)
    assert (await asked("transport.overflow", url, addresses={"o": NatsTransport.to(subject=name)})).result == "fail"
    await create(url, f"{name}-i", retention="interest")
    found = await asked("transport.overflow", url, addresses={"o": NatsTransport.to(subject=f"{name}-i")})
    assert (found.result, "while no consumer exists" in found.message) == ("warn", True)


async def test_a_stream_that_confirms_nothing_fails(url: str, name: str) -> None:
    await create(url, name, no_ack=True)
    found = await asked("transport.topology", url, addresses={"o": NatsTransport.to(subject=name)})
    assert (found.result, "no_ack" in found.message) == ("fail", True)


async def test_the_durability_of_a_stream_is_a_warning_or_a_failure(url: str, name: str) -> None:
    await create(url, name)
    found = await asked("transport.durability", url, addresses={"o": NatsTransport.to(subject=name)})
    assert (found.result, "power loss" in found.message, "every 2 minutes" in found.message) == ("warn", True, True)
    await create(url, f"{name}-m", storage="memory")
    found = await asked("transport.durability", url, addresses={"o": NatsTransport.to(subject=f"{name}-m")})
    assert (found.result, "memory" in found.message) == ("fail", True)


async def test_the_durability_of_streams_that_events_will_create_is_checked_before_the_first_event(
    url: str, name: str
) -> None:
    planned = [Stream(name=name, subjects=[name], storage="memory", duplicate_window="10s")]
    assert (await asked("transport.durability", url, streams=planned)).result == "fail"
    assert (await asked("transport.durability", url, streams=planned, declare=False)).result == "pass"
    assert (await asked("transport.duplicates", url, streams=planned, retry_horizon=42.0)).result == "warn"
    for destinations in ({}, {"o": NatsTransport.to(subject=name)}):
        found = await asked("transport.durability", url, addresses=destinations)
        assert (found.result, "one replica" in found.message) == ("warn", True)
        assert (await asked("transport.durability", url, addresses=destinations, replicas=3)).result == "pass"


async def test_a_duplicate_window_shorter_than_the_retries_of_a_relay_is_a_warning(url: str, name: str) -> None:
    await create(url, name, duplicate_window=10)
    to = {"o": NatsTransport.to(subject=name)}
    found = await asked("transport.duplicates", url, addresses=to, retry_horizon=42.0)
    assert (found.result, 'duplicate_window = "42s"' in found.fix) == ("warn", True)
    assert (await asked("transport.duplicates", url, addresses=to, retry_horizon=5.0)).result == "pass"


async def test_a_server_that_takes_smaller_messages_than_the_outbox_is_a_warning(url: str, name: str) -> None:
    found = await asked("transport.sizes", url)  # the defaults of NATS and of the outbox
    assert (found.result, "max_payload of the server is 1048576" in found.message) == ("warn", True)
    assert "raise max_payload of the server to 1056768" in found.fix
    exact = 1_048_576 - 2 * 4096
    assert (await asked("transport.sizes", url, max_payload=exact)).result == "pass"
    assert (await asked("transport.sizes", url, max_payload=exact + 1)).result == "warn"
    transport = NatsTransport(url)
    too_large = outgoing("large", NatsTransport.to(subject=name), body=b"x" * 1_048_576)
    async with aclosing(transport):
        [result] = await transport.send([too_large])
    assert isinstance(result, PermanentError)


async def test_a_stream_that_takes_smaller_messages_than_the_outbox_is_a_warning(url: str, name: str) -> None:
    planned = [Stream(name=name, subjects=[name], max_msg_size=5000)]
    found = await asked("transport.sizes", url, streams=planned, max_payload=1000)
    assert (found.result, f"max_msg_size of stream {name} is 5000" in found.message) == ("warn", True)
    assert (await asked("transport.sizes", url, streams=planned, max_payload=904)).result == "pass"
    await create(url, name, max_msg_size=6000)
    to = {"o": NatsTransport.to(subject=name)}
    assert (await asked("transport.sizes", url, addresses=to, max_payload=1904)).result == "pass"
    assert (await asked("transport.sizes", url, addresses=to, max_payload=1905)).result == "warn"


async def test_missing_replicas_of_a_cluster_are_a_warning() -> None:
    with available(NatsCluster) as cluster:
        url, to = cluster.url(), {"a": NatsTransport.to(subject="a"), "b": NatsTransport.to(subject="b")}

        async def ready() -> bool:
            try:
                await create(url, "a")
                await create(url, "b", num_replicas=3)
            except Exception:  # the cluster has no leader yet, and nats-py has several errors for that
                return False
            return True

        await eventually(ready, within=60)
        found = await asked("transport.replicas", url, addresses=to)
        assert (found.result, "a has 1 of 3 replicas" in found.message) == ("warn", True)

        async def all_current() -> bool:
            return (await asked("transport.replicas", url, addresses={"b": to["b"]})).result == "pass"

        await eventually(all_current, within=60)
