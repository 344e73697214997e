"""Receivers that are slow, break off or never end: every message gets its result, and memory stays bounded."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from pillarbox.core.errors import SendError, UnavailableError
from pillarbox.core.transport import SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.webhook import WebhookTransport
from pillarbox.transports.webhook.connection import Dialer
from tests.integration.webhook.conftest import MakeTransport
from tests.integration.webhook.receiver import Received, Receiver, accepted
from tests.integration.webhook.resolver import Scripted
from tests.servers.ports import free_port

Connection = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
TO = WebhookTransport.to()


@asynccontextmanager
async def listening(talk: Connection) -> AsyncIterator[str]:
    """A server that speaks whatever a test wants, after it has read the headers of a request."""
    open_writers: set[asyncio.StreamWriter] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_writers.add(writer)
        try:
            await reader.readuntil(b"\r\n\r\n")
            await talk(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for writer in open_writers:
            writer.transport.abort()
        server.close()


def writes(*parts: bytes) -> Connection:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
        await writer.drain()

    return talk


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close with RST instead of FIN."""
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1 << 16):
        pass


async def never(_: Received) -> web.StreamResponse:
    """A handler that does not respond."""
    await asyncio.Event().wait()
    return web.Response()


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A chunked response that never ends."""
    writer.write(b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await writer.drain()


async def send_one(make: MakeTransport, url: str, **options: Any) -> SendResult:
    [result] = await make(url, **options).send([outgoing("a", TO)])
    return result


@pytest.mark.parametrize(
    ("talk", "said"),
    [
        (reset, ""),
        (writes(), "closed before the response"),
        (writes(b"HTTP/1.1 20"), ""),
        (writes(b"SMTP ready\r\n\r\n"), "not valid HTTP"),
        (writes(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n"), "not valid HTTP"),
    ],
    ids=["reset", "closed", "half a line", "no HTTP", "endless header"],
)
async def test_a_connection_without_a_whole_response_is_an_outage(
    make: MakeTransport, talk: Connection, said: str
) -> None:
    async with listening(talk) as url:
        result = await send_one(make, url)
        assert isinstance(result, UnavailableError)
        assert said in str(result)


@pytest.mark.parametrize("said", ["closed before the response", ""], ids=["closed", "reset"])
async def test_a_receiver_that_closes_a_connection_before_its_request_is_an_outage_at_once(
    make: MakeTransport, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """As a load balancer does that has no server left."""
    dial = Dialer.dial

    async def dial_and_wait(self: Dialer, *given: Any) -> Any:
        connection = await dial(self, *given)
        await connection.closed.wait()
        return connection

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if said:
            writer.close()
        else:
            await reset(reader, writer)

    monkeypatch.setattr(Dialer, "dial", dial_and_wait)
    server = await asyncio.start_server(close, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        result = await send_one(make, url)
    assert isinstance(result, UnavailableError)
    assert said in str(result)
    assert "did not respond" not in str(result)


async def test_a_response_that_breaks_off_after_its_status_counts_by_its_status(make: MakeTransport) -> None:
    async with listening(writes(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")) as url:
        assert await send_one(make, url) is None
    async with listening(writes(b"HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\nhalf")) as url:
        assert "500" in str(await send_one(make, url))


async def test_a_response_without_end_is_cut_off(make: MakeTransport) -> None:
    async with listening(flood) as url:
        result = await send_one(make, url)
        assert isinstance(result, UnavailableError)
        assert len(str(result)) < 500


async def test_a_receiver_that_does_not_respond_is_an_outage_after_the_timeout(make: MakeTransport) -> None:
    async with listening(silence) as url:
        result = await send_one(make, url, send_timeout="200ms")
        assert isinstance(result, UnavailableError)
        assert "did not respond within 0.2 s" in str(result)


async def test_a_receiver_that_is_not_there_is_an_outage(make: MakeTransport) -> None:
    result = await send_one(make, f"http://127.0.0.1:{free_port()}")
    assert isinstance(result, UnavailableError)
    assert "Connect call failed" in str(result) or "refused" in str(result)


async def test_a_host_without_an_address_is_an_outage(make: MakeTransport) -> None:
    result = await send_one(make, "http://receiver.example", resolver=Scripted([]))
    assert isinstance(result, UnavailableError)
    assert "http://receiver.example failed: no such host" in str(result)


async def test_a_slow_receiver_does_not_delay_the_results_of_others(make: MakeTransport, receiver: Receiver) -> None:
    release = asyncio.Event()

    async def slow(_: Received) -> web.StreamResponse:
        await release.wait()
        return web.Response()

    receiver.answer = lambda request: slow(request) if request.path == "/slow" else accepted(request)
    transport = make(receiver.url())
    batch = [outgoing(f"s{n}", WebhookTransport.to("/slow")) for n in range(3)]
    batch += [outgoing(f"f{n}", WebhookTransport.to("/fast")) for n in range(5)]
    found: dict[int, SendResult] = {}
    stream = transport.stream(batch)
    async for results in stream:
        found.update(results)
        if len(found) == 5:
            assert set(found) == set(range(3, 8))
            release.set()
    assert list(found.values()) == [None] * 8


async def test_a_host_gets_no_more_requests_at_once_than_it_may_have_connections(
    make: MakeTransport, receiver: Receiver
) -> None:
    full = asyncio.Event()

    async def busy(_: Received) -> web.StreamResponse:
        await full.wait()
        return web.Response()

    receiver.answer = busy
    transport = make(receiver.url(), connections_per_host=3)
    addresses = [WebhookTransport.to(f"/{n}") for n in range(4)]
    sending = asyncio.create_task(transport.send([outgoing(str(n), addresses[n % 4]) for n in range(40)]))
    await eventually(lambda: receiver.most_at_once >= 3)
    full.set()
    assert await sending == [None] * 40
    assert receiver.most_at_once == 3


async def test_a_request_that_waits_for_a_connection_does_not_time_out(
    make: MakeTransport, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, passed = asyncio.get_running_loop(), 0
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + passed)

    async def slow(_: Received) -> web.StreamResponse:
        nonlocal passed
        passed += 15  # half of the limit; the last request waits for twice the limit
        return web.Response()

    receiver.answer = slow
    transport = make(receiver.url(), connections_per_host=1, send_timeout="30s")
    assert await transport.send([outgoing(str(n), TO) for n in range(5)]) == [None] * 5


async def test_a_destination_that_hangs_leaves_the_others_their_share(make: MakeTransport, receiver: Receiver) -> None:
    transport = make(receiver.url(), connections_per_host=20, total_connections=20)
    capacity = transport.pace.capacity
    assert capacity is not None
    hanging, other = WebhookTransport.to("/hanging"), WebhookTransport.to("/other")
    assert capacity(hanging, {}) == 20
    assert capacity(other, {hanging: 15}) >= 1
    assert 0 < capacity(hanging, {}) < 20
    assert capacity(hanging, {hanging: 15}) == 0


async def test_connections_are_kept_for_the_next_request(make: MakeTransport, receiver: Receiver) -> None:
    ports = set()

    async def note(request: Received) -> web.StreamResponse:
        return web.Response(text="some text that has to be read before the connection can be used again")

    receiver.answer = note
    transport = make(receiver.url(), connections_per_host=1)
    for n in range(10):
        assert await transport.send([outgoing(str(n), TO)]) == [None]
        ports |= receiver.peers()
    assert len(ports) == 1


async def test_a_response_in_chunks_keeps_its_connection(make: MakeTransport, receiver: Receiver) -> None:
    ports = set()

    def parts(_: Received) -> web.Response:
        response = web.Response(body=b"some text")
        response.enable_chunked_encoding()
        return response

    receiver.answer = parts
    transport = make(receiver.url(), connections_per_host=1)
    for n in range(5):
        assert await transport.send([outgoing(str(n), TO)]) == [None]
        ports |= receiver.peers()
    assert len(ports) == 1


async def test_cancelled_requests_leave_their_connections_to_others(make: MakeTransport, receiver: Receiver) -> None:
    receiver.answer = never
    transport = make(receiver.url(), connections_per_host=2)
    sending = asyncio.create_task(transport.send([outgoing(str(n), TO) for n in range(5)]))
    await eventually(lambda: len(receiver.requests) == 2)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    receiver.answer = accepted
    assert await transport.send([outgoing(f"after {n}", TO) for n in range(5)]) == [None] * 5
    assert [name for name in receiver.ids() if name in ("2", "3", "4")] == []


async def test_all_hosts_together_get_no_more_requests_at_once_than_allowed(
    make: MakeTransport, receiver: Receiver
) -> None:
    now = most = 0

    async def count(_: Received) -> web.StreamResponse:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return web.Response()

    async with Receiver() as other:
        receiver.answer = other.answer = count
        transport = make(receiver.url(), connections_per_host=3, total_connections=3)
        addresses = [TO, WebhookTransport.to(other.url("/other"))]
        results = await transport.send([outgoing(str(n), addresses[n % 2]) for n in range(40)])
        assert results == [None] * 40
        assert (len(receiver.requests), len(other.requests)) == (20, 20)
    assert most <= 3


async def test_a_host_whose_requests_wait_for_those_of_another_gets_them_afterwards(
    make: MakeTransport, receiver: Receiver
) -> None:
    async with Receiver() as other:
        transport = make(receiver.url(), connections_per_host=1, total_connections=1)
        addresses = [TO, TO, WebhookTransport.to(other.url("/other"))]
        async with asyncio.timeout(30):
            results = await transport.send([outgoing(str(n), one) for n, one in enumerate(addresses)])
    assert results == [None, None, None]


async def test_a_closed_transport_fails_what_is_under_way(make: MakeTransport, receiver: Receiver) -> None:
    receiver.answer = never
    transport = make(receiver.url(), connections_per_host=1)
    sending = asyncio.create_task(transport.send([outgoing(str(n), TO) for n in range(3)]))
    await eventually(lambda: len(receiver.requests) == 1)
    await transport.aclose()
    assert {str(result) for result in await sending} == {"the webhook transport is closed; create a new one"}
    await eventually(lambda: receiver.peers() == set())


async def test_nothing_is_lost_when_the_receiver_goes_away_and_comes_back(make: MakeTransport) -> None:
    transport, results = None, dict[str, SendResult]()
    receiver = Receiver()
    async with receiver:
        transport = make(receiver.url())
        results["a"] = (await transport.send([outgoing("a", TO)]))[0]
    results["b"] = (await transport.send([outgoing("b", TO)]))[0]
    async with receiver:

        async def accepted_again() -> bool:
            [result] = await transport.send([outgoing("c", TO)])
            return result is None

        await eventually(accepted_again, within=30)
    assert results["a"] is None
    assert isinstance(results["b"], UnavailableError)
    assert receiver.ids()[0] == "a"
    assert "c" in receiver.ids()


async def test_errors_say_neither_path_nor_query(make: MakeTransport) -> None:
    port = free_port()
    result = await send_one(make, f"http://127.0.0.1:{port}/services/T0/SECRET?token=SECRET")
    assert isinstance(result, SendError)
    assert "SECRET" not in str(result) + repr(result)
    assert f"http://127.0.0.1:{port}" in str(result)


async def test_a_ping_succeeds_if_any_host_of_the_destinations_can_be_reached(
    make: MakeTransport, receiver: Receiver
) -> None:
    gone = f"http://127.0.0.1:{free_port()}"
    transport = make(gone)
    with pytest.raises(UnavailableError, match="cannot be reached"):
        await transport.ping()
    assert transport.pace.capacity is not None
    for url in (gone, receiver.url("/in")):
        transport.pace.capacity(WebhookTransport.to(url), {})
    await transport.ping()
    assert receiver.requests == []
