"""Lost connections: every message has one result, nothing is sent again unseen, and nothing accepted is lost."""

import asyncio
from collections import Counter
from contextlib import suppress

from pillarbox.core.errors import UnavailableError
from pillarbox.core.transport import SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.testing.waiting import eventually
from pillarbox.transports.redis import RedisTransport
from tests.integration.rabbitmq.proxy import Proxy
from tests.integration.redis.conftest import Batch, MakeTransport
from tests.integration.redis.reading import ids
from tests.integration.redis.scripted import scripted
from tests.servers.redis import RedisServer


async def test_messages_without_a_reply_have_one_result_each_and_are_not_sent_again(
    make: MakeTransport, redis_server: RedisServer, proxy: Proxy, proxied: str, batch: Batch, stream: str
) -> None:
    transport = make(proxied)
    assert await transport.send(batch(1, "first")) == [None]
    proxy.silence()
    sending = asyncio.create_task(transport.send(batch(50)))

    async def stored() -> bool:
        return len(await asyncio.to_thread(ids, redis_server, stream)) == 51

    await eventually(stored)
    await proxy.reset()
    results = await sending
    assert [type(result) for result in results] == [UnavailableError] * 50
    assert proxy.accepted == 1
    assert await transport.send(batch(1, "last")) == [None]
    assert ids(redis_server, stream) == ["first0", *(f"e{n}" for n in range(50)), "last0"]


async def test_replies_before_the_loss_count(make: MakeTransport, batch: Batch) -> None:
    answers = iter([b"$3\r\n1-0\r\n", b"-OOM command not allowed\r\n", b"$3\r\n2-0\r\n"])
    async with scripted(lambda _: next(answers, None)) as url:
        results = await make(url).send(batch(6))
    assert [None if result is None else type(result).__name__ for result in results] == [
        *(None, "NackedError", None),
        *["UnavailableError"] * 3,
    ]


async def test_a_server_that_does_not_reply_is_unavailable_after_the_timeout(
    make: MakeTransport, proxy: Proxy, proxied: str, batch: Batch
) -> None:
    transport = make(proxied, send_timeout="200ms")
    assert await transport.send(batch(1)) == [None]
    proxy.silence()
    results = await asyncio.gather(transport.send(batch(3)), transport.send(batch(2)))
    assert [type(result) for results in results for result in results] == [UnavailableError] * 5
    assert "did not reply" in str(results[0][0])
    await proxy.reset()
    assert await transport.send(batch(1)) == [None]


async def test_a_slow_connection_that_makes_progress_does_not_time_out(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    async with Proxy(redis_server.port, rate=400_000) as slow:
        transport = make(f"redis://127.0.0.1:{slow.port}", send_timeout="500ms")
        assert await transport.send(batch(40, body=bytes(10_000))) == [None] * 40


async def test_a_server_of_another_protocol_is_unavailable(make: MakeTransport, batch: Batch) -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        [result] = await make(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}").send(batch(1))
    assert isinstance(result, UnavailableError)


async def test_cancelled_sends_do_not_mix_up_the_replies_of_others(
    make: MakeTransport, redis_server: RedisServer, batch: Batch, stream: str
) -> None:
    transport = make()
    with redis_server.client() as client:
        client.set(f"{stream}-text", "not a stream")
    for turn in range(20):
        cancelled = asyncio.create_task(transport.send(batch(50, f"cancelled{turn}-")))
        wrong = outgoing("wrong", RedisTransport.to(stream=f"{stream}-text"))
        sending = asyncio.create_task(transport.send([*batch(3, f"kept{turn}-"), wrong]))
        for _ in range(turn % 4):
            await asyncio.sleep(0)
        cancelled.cancel()
        *kept, refused = await sending
        assert kept == [None] * 3
        assert isinstance(refused, UnavailableError)
        await asyncio.wait({cancelled})
    stored = ids(redis_server, stream)
    assert {f"kept{turn}-{n}" for turn in range(20) for n in range(3)} <= set(stored)
    assert max(Counter(stored).values()) == 1


async def test_no_accepted_message_is_lost_when_the_server_is_killed(
    make: MakeTransport, private_redis: RedisServer, stream: str
) -> None:
    """With `appendfsync always`. A power failure is another matter."""
    transport = make(private_redis.url())
    results: dict[str, SendResult] = {}
    unavailable: list[SendResult] = []
    over = asyncio.Event()

    async def reachable() -> bool:
        with suppress(UnavailableError):
            await transport.ping()
            return True
        return False

    async def sending(key: int) -> None:
        """One batch after another; what failed is sent again before anything else, as a relay does."""
        to, number = RedisTransport.to(stream=f"{stream}-{key}"), 0
        while not over.is_set():
            names = [f"{key}-{n:06}" for n in range(number, number + 50)]
            while None not in (sent := await transport.send([outgoing(name, to) for name in names])) or any(sent):
                results.update(zip(names, sent, strict=True))
                names = [name for name, result in zip(names, sent, strict=True) if result is not None]
                unavailable.extend(result for result in sent if result is not None)
                await eventually(reachable)
            results.update(dict.fromkeys(names))
            number += 50

    async def accepted(more: int) -> None:
        before = sum(result is None for result in results.values())
        await eventually(lambda: sum(result is None for result in results.values()) >= before + more)

    async with asyncio.TaskGroup() as group:
        for key in (0, 1):
            group.create_task(sending(key))
        for _ in range(2):
            await accepted(1000)
            await asyncio.to_thread(private_redis.kill)
            await asyncio.to_thread(private_redis.start)
        await accepted(500)
        over.set()
    assert {type(result) for result in unavailable} == {UnavailableError}
    for key in (0, 1):
        stored = ids(private_redis, f"{stream}-{key}")
        wanted = sorted(name for name, result in results.items() if result is None and name.startswith(f"{key}-"))
        assert list(dict.fromkeys(stored)) == wanted, "a message is missing, or was first stored after a later one"
