"""Streams: declared from the settings, compared with those that exist, and created for subjects that have none."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pillarbox.core.errors import ConfigurationError, UnavailableError
from pillarbox.core.transport import Outgoing
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.nats import NatsSource, NatsTransport, Stream
from pillarbox.transports.nats.connection import NatsConnection
from tests.integration.nats.conftest import MakeTransport
from tests.integration.nats.streams import jetstream, stored_ids

Batch = Callable[..., list[Outgoing]]


async def test_every_setting_of_a_stream_reaches_the_server(make: MakeTransport, name: str, url: str) -> None:
    stream = Stream(
        name=name,
        subjects=[f"{name}.>", f"{name}-x"],
        storage="memory",
        retention="interest",
        duplicate_window="30s",
        max_age="1h",
        max_bytes="1 MiB",
        max_msgs=10,
        max_msg_size="2 KiB",
        discard="old",
    )
    transport = make(streams=[stream])
    await transport.ping()
    async with jetstream(url) as server:
        config = (await server.stream_info(name)).config
    assert (config.subjects, config.storage, config.retention) == ([f"{name}.>", f"{name}-x"], "memory", "interest")
    assert (config.duplicate_window, config.max_age, config.num_replicas) == (30, 3600, 1)
    assert (config.max_bytes, config.max_msgs, config.max_msg_size, config.discard) == (1_048_576, 10, 2048, "old")
    await transport.declare_topology()


async def test_a_stream_that_differs_stops_sending_and_is_not_changed(
    make: MakeTransport, name: str, batch: Batch, url: str
) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name], max_msgs=5)
    transport = make(streams=[Stream(name=name, subjects=[name], max_msgs=7)])
    [result] = await transport.send(batch(1))
    assert isinstance(result, UnavailableError)
    assert "max_msgs 5 instead of 7" in str(result)
    with pytest.raises(ConfigurationError, match="nats stream edit"):
        await transport.declare_topology()
    with pytest.raises(UnavailableError, match="max_msgs"):
        await transport.ping()
    assert await make(streams=[Stream(name=name, subjects=[name], max_msgs=7)], declare=False).send(batch(1)) == [None]


async def test_a_stream_of_another_name_with_the_subject_is_a_configuration_error(
    make: MakeTransport, name: str, url: str
) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=f"{name}-other", subjects=[name])
    with pytest.raises(ConfigurationError, match="another stream has one of its subjects"):
        await make(streams=[Stream(name=name, subjects=[name])]).declare_topology()


async def test_an_event_type_becomes_a_subject_in_a_stream_of_its_own(make: MakeTransport, name: str, url: str) -> None:
    transport = make()
    [address] = transport.defaults(f"{name}.placed").values()
    assert await transport.send([outgoing("a", address, event_type=f"{name}.placed")]) == [None]
    async with jetstream(url) as server:
        config = (await server.stream_info(f"{name}_placed")).config
    assert (config.subjects, config.storage, config.discard, config.max_age) == ([f"{name}.placed"], "file", "new", 0)


async def test_an_existing_stream_with_the_subject_is_used(make: MakeTransport, name: str, url: str) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[f"{name}.>"])
    assert await make().send([outgoing("a", NatsTransport.to(subject=f"{name}.placed"))]) == [None]
    assert await stored_ids(url, name) == ["a"]


async def test_many_new_subjects_in_one_batch_get_their_streams(make: MakeTransport, name: str, url: str) -> None:
    batch = [outgoing(f"e{n}", NatsTransport.to(subject=f"{name}-{n}")) for n in range(25)]
    assert await make().send(batch) == [None] * 25
    assert [await stored_ids(url, f"{name}-{n}") for n in (0, 24)] == [["e0"], ["e24"]]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"deliver_subject": "pushed"}, "pull consumer"),
        ({"ack_policy": "none"}, "explicit acks"),
        ({"filter_subject": "elsewhere"}, "consumes 'elsewhere'"),
        (
            {"max_deliver": 5},
            "set it to -1",
        ),  # the server would stop delivering a message, and only publish an advisory
    ],
)
async def test_a_consumer_of_the_group_that_would_not_deliver_everything_is_a_configuration_error(
    name: str, url: str, config: dict[str, Any], said: str
) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name, "elsewhere"])
        await server.add_consumer(name, durable_name="billing", **({"ack_policy": "explicit"} | config))
    source = NatsSource(url, subject=name, group="billing")
    with pytest.raises(ConfigurationError, match=said):
        await source.connect()
    await source.aclose()


async def test_a_subject_in_parts_of_two_streams_needs_the_name_of_one(name: str, url: str) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=f"{name}-a", subjects=[f"{name}.a"])
        await server.add_stream(name=f"{name}-b", subjects=[f"{name}.b"])
    source = NatsSource(url, subject=f"{name}.>")
    with pytest.raises(ConfigurationError, match="name one"):
        await source.connect()
    await source.aclose()


async def test_without_declare_a_source_creates_nothing(name: str, url: str) -> None:
    source = NatsSource(url, subject=name, declare=False)
    with pytest.raises(UnavailableError, match="no stream"):
        await source.connect()
    await source.aclose()
    async with jetstream(url) as server:
        assert [info for info in await server.streams_info() if str(info.config.name).startswith(name)] == []


def before(verb: str, act: Callable[[], Awaitable[object]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that happens on the server just before a request of this verb arrives."""
    request = NatsConnection.request

    async def request_after_it(
        self: NatsConnection, asked: str, payload: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        if asked.startswith(verb):
            await act()
        return await request(self, asked, payload)

    monkeypatch.setattr(NatsConnection, "request", request_after_it)


@pytest.mark.parametrize("suffix", ["", "-other"])
async def test_a_stream_that_another_process_creates_in_between_is_used(
    make: MakeTransport, name: str, url: str, batch: Batch, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    async with jetstream(url) as server:
        before(
            f"STREAM.CREATE.{name}",
            lambda: server.add_stream(name=f"{name}{suffix}", subjects=[name], max_msgs=5),
            monkeypatch,
        )
        source = NatsSource(url, subject=name)
        await source.connect()
        await source.aclose()
    assert await make().send(batch(1)) == [None]


async def test_a_stream_that_is_deleted_before_its_consumer_is_created_is_unavailable(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name])
        before(f"CONSUMER.DURABLE.CREATE.{name}.pillarbox", lambda: server.delete_stream(name), monkeypatch)
        source = NatsSource(url, subject=name)
        with pytest.raises(UnavailableError, match="stream not found"):
            await source.connect()
        monkeypatch.undo()
        await source.connect()
        await source.aclose()
