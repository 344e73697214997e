"""Results: what JetStream and the server answer to each message of a batch, and what arrives."""

import asyncio
from collections.abc import Callable
from typing import Any

import nats
import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_binary_event
from cloudevents.core.formats.json import JSONFormat

from pillarbox.core.errors import NackedError, PermanentError, UnavailableError
from pillarbox.core.transport import Outgoing
from pillarbox.relay.envelope import CloudEvents, headers_for
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.nats import NatsTransport, Stream
from tests.integration.nats.conftest import MakeTransport
from tests.integration.nats.streams import count, jetstream, stored, stored_ids
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.availability import available
from tests.servers.nats import NatsServer

Batch = Callable[..., list[Outgoing]]


async def test_a_full_stream_nacks_the_messages_that_do_not_fit(
    make: MakeTransport, name: str, batch: Batch, url: str
) -> None:
    transport = make(streams=[Stream(name=name, subjects=[name], max_msgs=2)])
    results = await transport.send(batch(4))
    assert [type(result) for result in results] == [type(None), type(None), NackedError, NackedError]
    assert await stored_ids(url, name) == ["e0", "e1"]
    async with jetstream(url) as server:
        await server.purge_stream(name)
    assert await transport.send(batch(4)[2:]) == [None, None]


async def test_a_full_account_nacks_messages_until_it_has_room(make: MakeTransport, name: str, batch: Batch) -> None:
    account = "jetstream: { max_file: 100KB }, users: [ { user: app, password: secret } ]"
    lines = [f"accounts {{ tests {{ {account} }} }}", "no_auth_user: app"]
    with available(lambda: NatsServer(lines=lines)) as server:
        transport = make(server.url())
        results = await transport.send([one._replace(body=bytes(10_000)) for one in batch(30)])
        assert {type(result) for result in results} == {type(None), NackedError}
        async with jetstream(server.url()) as context:
            await context.purge_stream(name)
        assert await transport.send(batch(1, "f")) == [None]


async def test_a_message_over_the_limit_of_the_stream_fails_permanently_and_alone(
    make: MakeTransport, name: str, batch: Batch, url: str
) -> None:
    transport = make(streams=[Stream(name=name, subjects=[name], max_msg_size=2000)])
    first, second, third = batch(3)
    results = await transport.send([first, second._replace(body=b"x" * 3000), third])
    assert [type(result) for result in results] == [type(None), PermanentError, type(None)]
    assert await stored_ids(url, name) == ["e0", "e2"]


async def test_a_message_over_the_limit_of_the_server_is_not_sent_and_the_connection_stays(
    make: MakeTransport, proxy: Proxy, batch: Batch
) -> None:
    transport = make(f"nats://127.0.0.1:{proxy.port}")
    first, second, third = batch(3)
    # The body alone fits. The server counts the headers, too, and closes the connection if all is too large.
    results = await transport.send([first, second._replace(body=b"x" * (1_048_576 - 4096)), third])
    assert [type(result) for result in results] == [type(None), PermanentError, type(None)]
    assert await transport.send([first]) == [None]
    assert proxy.accepted == 1


async def test_a_message_with_headers_over_the_limit_of_jetstream_fails_permanently_and_alone(
    make: MakeTransport, batch: Batch
) -> None:
    first, second, third = batch(3)
    results = await make().send([first, second._replace(headers={"h": "v" * 61_440}), third])
    assert [type(result) for result in results] == [type(None), PermanentError, type(None)]


async def test_a_header_that_is_not_unicode_fails_permanently_and_alone(make: MakeTransport, batch: Batch) -> None:
    first, second, third = batch(3)
    results = await make().send([first, second._replace(headers={"h": "\ud800"}), third])
    assert [type(result) for result in results] == [type(None), PermanentError, type(None)]


async def test_a_subject_without_a_stream_is_unavailable_and_harms_no_other(
    make: MakeTransport, name: str, batch: Batch, url: str
) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name])
    missing = outgoing("lost", NatsTransport.to(subject=f"{name}-missing"))
    results = await make(declare=False).send([*batch(2), missing, *batch(2, "f")])
    assert [type(result) for result in results] == [type(None), type(None), UnavailableError, type(None), type(None)]
    assert len(await stored(url, name)) == 4


async def test_a_subject_without_a_stream_defers_its_own_messages_if_the_destination_has_others(
    make: MakeTransport, name: str, url: str
) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name])
    to = NatsTransport.to(subject="{event_type}")
    refused, stored = await make(declare=False).send(
        [outgoing("lost", to, event_type=f"{name}-missing"), outgoing("found", to, event_type=name)]
    )
    assert type(refused) is NackedError
    assert stored is None


async def test_a_stream_that_was_deleted_is_created_again(
    make: MakeTransport, name: str, batch: Batch, url: str
) -> None:
    transport = make()
    assert await transport.send(batch(1)) == [None]
    async with jetstream(url) as server:
        await server.delete_stream(name)
    [result] = await transport.send(batch(1, "f"))
    assert isinstance(result, UnavailableError)
    assert await transport.send(batch(1, "g")) == [None]
    assert await stored_ids(url, name) == ["g0"]


async def test_a_stream_of_the_settings_that_was_deleted_is_created_again_as_they_say(
    make: MakeTransport, name: str, url: str
) -> None:
    transport = make(streams=[Stream(name=name, subjects=[f"{name}.*"])])
    to = NatsTransport.to(subject=f"{name}.a")
    assert await transport.send([outgoing("a", to)]) == [None]
    async with jetstream(url) as server:
        await server.delete_stream(name)
    [result] = await transport.send([outgoing("b", to)])
    assert isinstance(result, UnavailableError)
    assert await transport.send([outgoing("b", to)]) == [None]
    assert await stored_ids(url, name) == ["b"]


async def test_another_stream_than_the_expected_one_refuses_the_message(
    make: MakeTransport, name: str, url: str
) -> None:
    transport = make(streams=[Stream(name=name, subjects=[f"{name}.>"])])
    right, wrong = (NatsTransport.to(subject=f"{name}.a", expected_stream=stream) for stream in (name, "elsewhere"))
    results = await transport.send([outgoing("a", right), outgoing("b", wrong), outgoing("c", right)])
    assert [type(result) for result in results] == [type(None), UnavailableError, type(None)]
    assert "elsewhere" in str(results[1])
    assert await stored_ids(url, name) == ["a", "c"]


async def test_a_sealed_stream_is_unavailable_and_no_event_is_at_fault(
    make: MakeTransport, name: str, batch: Batch, url: str
) -> None:
    transport = make()
    assert await transport.send(batch(1)) == [None]
    async with jetstream(url) as server:
        config = (await server.stream_info(name)).config
        await server.update_stream(config.evolve(sealed=True))
    [result] = await transport.send(batch(1, "f"))
    assert isinstance(result, UnavailableError)
    assert "sealed" in str(result)


@pytest.mark.parametrize(
    "answer",
    [
        b'{"ok": true}',
        b"OK",
        b"1",
        b"null",
        b'["error"]',
        b'{"error": "not found"}',
        b'{"error": {"code": "NOT_FOUND", "message": "no such order"}}',
        b'{"error": null, "stream": "s", "seq": 1}',
        b"[" * 100_000,
    ],
)
async def test_an_answer_of_something_else_than_jetstream_is_no_acceptance_and_affects_no_other_subject(
    make: MakeTransport, name: str, batch: Batch, proxy: Proxy, url: str, answer: bytes
) -> None:
    assert await make().send(batch(1)) == [None]  # creates the stream of the other subject
    client = await nats.connect(url)

    async def respond(message: Any) -> None:
        await message.respond(answer)

    await client.subscribe(f"{name}-answered", cb=respond)
    await client.flush()
    transport = make(f"nats://127.0.0.1:{proxy.port}", declare=False)
    both = [outgoing("a", NatsTransport.to(subject=f"{name}-answered")), outgoing("b", NatsTransport.to(subject=name))]
    answered, stored_one = await transport.send(both)
    await client.close()
    assert isinstance(answered, UnavailableError)
    assert "else than JetStream" in str(answered)
    assert stored_one is None
    assert proxy.accepted == 1


async def test_a_message_that_is_sent_again_is_stored_once(
    make: MakeTransport, name: str, batch: Batch, url: str
) -> None:
    assert await make().send(batch(3)) == [None] * 3
    assert await make().send([*batch(3), *batch(1, "f")]) == [None] * 4
    assert await stored_ids(url, name) == ["e0", "e1", "e2", "f0"]


async def test_one_event_to_two_subjects_of_one_stream_is_stored_twice(
    make: MakeTransport, name: str, url: str
) -> None:
    transport = make(streams=[Stream(name=name, subjects=[f"{name}.>"])])
    both = [outgoing("a", NatsTransport.to(subject=f"{name}.{word}")) for word in ("billing", "audit")]
    assert await transport.send(both) == [None, None]
    assert [(one.subject, one.event_id) for one in await stored(url, name)] == [
        (f"{name}.billing", "a"),
        (f"{name}.audit", "a"),
    ]


async def test_headers_of_a_producer_do_not_command_the_server_nor_replace_ours(
    make: MakeTransport, name: str, url: str
) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name], allow_rollup_hdrs=True)
    address = NatsTransport.to(subject=name)
    theirs = {"Nats-Rollup": "all", "nats-msg-id": "x", "eventid": "y", "Content-Type": "z", "a:b c\n%": " 100%\r\n "}
    results = await make().send([outgoing("a", address), outgoing("b", address, headers=theirs)])
    assert results == [None, None]
    _, found = await stored(url, name)
    assert (found.event_id, found.headers["content-type"]) == ("b", "application/octet-stream")
    assert {name: found.headers.get(name) for name in theirs} == {
        "Nats-Rollup": "all",
        "nats-msg-id": "x",
        "eventid": None,
        "Content-Type": None,
        "a:b c\n%": " 100%\r\n ",
    }
    assert found.headers["Nats-Msg-Id"] == f"b@{name}"


async def test_values_of_an_event_cannot_leave_their_place_in_the_subject(
    make: MakeTransport, name: str, url: str
) -> None:
    transport = make(streams=[Stream(name=name, subjects=[f"{name}.>"])])
    message = outgoing("a", NatsTransport.to(subject=f"{name}.{{key}}"))
    strange = message._replace(message=message.message._replace(key="a b*>é%.c"))
    assert await transport.send([strange]) == [None]
    assert [one.subject for one in await stored(url, name)] == [f"{name}.a%20b%2A%3Eé%25.c"]


async def test_no_stream_is_created_for_each_key(make: MakeTransport, name: str, url: str) -> None:
    [result] = await make().send([outgoing("a", NatsTransport.to(subject=f"{name}.{{key}}"))])
    assert isinstance(result, UnavailableError)
    assert "configure a stream" in str(result)


async def test_a_message_without_a_confirmation_is_unavailable_and_stored_once_when_sent_again(
    make: MakeTransport, proxy: Proxy, name: str, batch: Batch, url: str
) -> None:
    transport = make(f"nats://127.0.0.1:{proxy.port}", send_timeout="300ms")
    assert await transport.send(batch(1)) == [None]
    proxy.silence()
    results = await transport.send(batch(3, "f"))
    assert [type(result) for result in results] == [UnavailableError] * 3
    await proxy.reset()
    assert await transport.send(batch(3, "f")) == [None] * 3
    assert await stored_ids(url, name) == ["e0", "f0", "f1", "f2"]


async def test_messages_beyond_the_window_do_not_overtake_those_of_a_lost_connection(
    make: MakeTransport, proxy: Proxy, name: str, batch: Batch, url: str
) -> None:
    transport = make(f"nats://127.0.0.1:{proxy.port}", window=10, send_timeout="60s")
    assert await transport.send(batch(1, "first")) == [None]
    proxy.silence()
    sending = asyncio.create_task(transport.send(batch(30)))

    async def window_is_stored() -> bool:
        return await count(url, name) == 11

    await eventually(window_is_stored, within=60)
    await proxy.reset()
    assert [type(result) for result in await sending] == [UnavailableError] * 30
    assert await stored_ids(url, name) == ["first0", *(f"e{n}" for n in range(10))]


async def test_messages_beyond_the_window_do_not_overtake_those_without_a_confirmation(
    make: MakeTransport, name: str, batch: Batch, url: str
) -> None:
    client = await nats.connect(url)
    await client.subscribe(f"{name}-silent")  # a plain subscriber, which never answers
    await client.flush()
    transport = make(declare=False, window=10, send_timeout="300ms")
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name])
    silent = outgoing("a", NatsTransport.to(subject=f"{name}-silent"))
    results = await transport.send([silent, *batch(29)])
    await client.close()
    assert [type(result) for result in results] == [UnavailableError, *[type(None)] * 9, *[UnavailableError] * 20]
    assert await stored_ids(url, name) == [f"e{n}" for n in range(9)]


async def test_binary_cloudevents_are_read_by_the_official_sdk(make: MakeTransport, name: str, url: str) -> None:
    address = NatsTransport.to(subject=name)
    message = outgoing('id "1%" é', address, body=b"{}", content_type="application/json")
    headers = headers_for(message.message, CloudEvents(source="/shop/orders", mode="binary"), address)
    assert await make().send([message._replace(headers=headers)]) == [None]
    async with jetstream(url) as server:
        raw = await server.get_msg(name, 1)
    event = from_binary_event(HTTPMessage(headers=dict(raw.headers or {}), body=raw.data or b""), JSONFormat())
    assert (event.get_id(), event.get_source(), event.get_type()) == ('id "1%" é', "/shop/orders", "thing.happened")
    assert event.get_datacontenttype() == "application/json"


async def test_a_stream_that_confirms_nothing_defers_its_own_messages_if_the_destination_has_others(
    make: MakeTransport, name: str, url: str
) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name])
        await server.add_stream(name=f"{name}-mute", subjects=[f"{name}-mute"], no_ack=True)
    to = NatsTransport.to(subject="{event_type}")
    mute, stored = await make(send_timeout="1s").send(
        [outgoing("mute", to, event_type=f"{name}-mute"), outgoing("stored", to, event_type=name)]
    )
    assert type(mute) is NackedError
    assert stored is None


async def test_sends_in_flight_do_not_wait_for_one_that_stalls(make: MakeTransport, name: str, url: str) -> None:
    client = await nats.connect(url)
    await client.subscribe(f"{name}-silent")  # a plain subscriber, which never answers
    await client.flush()
    transport = make(declare=False, send_timeout="1s")
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name])
    stalled = asyncio.create_task(transport.send([outgoing("a", NatsTransport.to(subject=f"{name}-silent"))]))
    assert await transport.send([outgoing("b", NatsTransport.to(subject=name))]) == [None]
    [result] = await stalled
    assert isinstance(result, UnavailableError)
    assert await transport.send([outgoing("c", NatsTransport.to(subject=name))]) == [None]
    await client.close()


@pytest.mark.parametrize(
    "url", ["http://x", "nats://a:b/c@host", "nats://h:x", "nats://h/path", "nats://u,v@h", "nats://a,tls://b"]
)
def test_a_url_that_cannot_be_read_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(Exception, match=r"URL|server") as caught:
        NatsTransport(url)
    assert url not in str(caught.value)


@pytest.mark.parametrize("subject", ["{event_type}", "{key}", "{aggregate_id}"])
@pytest.mark.parametrize("verb", ["PURGE", "DELETE"])
async def test_no_value_of_an_event_is_a_command_to_the_server(
    make: MakeTransport, name: str, batch: Batch, url: str, subject: str, verb: str
) -> None:
    await make(streams=[Stream(name=name, subjects=[name])]).send(batch(1))
    to = NatsTransport.to(subject=subject)
    command = f"$JS.API.STREAM.{verb}.{name}"
    hostile = outgoing("e", to, body=b"{}", event_type=command)
    hostile = hostile._replace(message=hostile.message._replace(key=command, aggregate_id=command))
    await make(declare=False).send([hostile])
    assert await stored_ids(url, name) == ["e0"]
    assert to.subject_for(hostile.message) == f"%24{command[1:]}"
    assert NatsTransport.to(subject="$KV.shops.{key}").subject_for(hostile.message).startswith("$KV.shops.$JS.")
