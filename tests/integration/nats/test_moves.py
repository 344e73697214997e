"""Messages that a consumer moves: to wait for a retry, to quarantine and to the dead letters."""

import asyncio

import pytest
from nats.js.api import DiscardPolicy, RetentionPolicy

from pillarbox.core.errors import UnavailableError
from pillarbox.testing.conformance.sources.receive import take, take_through_outages
from pillarbox.testing.waiting import eventually
from pillarbox.transports.nats import NatsSource
from pillarbox.transports.nats.headers import MAX_HEADERS
from pillarbox.transports.nats.session import NatsConsumerSession
from tests.integration.nats.streams import count, jetstream, put, stored
from tests.integration.rabbitmq.proxy import Proxy


async def test_a_retry_that_is_repeated_after_a_lost_ack_is_stored_once(
    name: str, url: str, proxy: Proxy, sources: list[NatsSource]
) -> None:
    await put(url, name, "a")
    sources.append(NatsSource(f"nats://127.0.0.1:{proxy.port}", subject=name, reply_timeout="300ms", ack_wait="1s"))
    held = await take(sources[0])
    proxy.silence()
    retrying = asyncio.create_task(held.retry(delay=0, reason="the answer is lost"))

    async def copied() -> bool:
        return await count(url, f"{name}_pillarbox_retry") > 0

    await eventually(copied, within=60)
    await proxy.reset()
    with pytest.raises(UnavailableError):
        await retrying
    found = [await take_through_outages(sources[0]) for _ in range(2)]
    assert sorted((str(one.incoming.event_id), one.incoming.attempts) for one in found) == [("a", 0), ("a", 1)]
    for one in found:
        await one.retry(delay=3600, reason="the copy of the original exists")
    assert await count(url, f"{name}_pillarbox_retry") == 1


async def test_a_message_of_a_stream_that_is_created_again_is_no_duplicate_of_an_earlier_one(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    for event_id in ("old", "new"):
        await put(url, name, event_id)
        sources.append(NatsSource(url, subject=name))
        delivery = await take_through_outages(sources[-1])
        assert delivery.incoming.event_id == event_id
        await delivery.retry(delay=3600, reason="later")
        await sources[-1].aclose()
        async with jetstream(url) as server:
            await server.delete_stream(name)
    assert await count(url, f"{name}_pillarbox_retry") == 2


async def test_a_message_of_another_producer_keeps_id_and_subject_in_retry_and_quarantine(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[f"{name}.*"])
        headers = {"Nats-Msg-Id": "theirs", "pillarbox-subject": "forged"}
        await server.publish(f"{name}.a%20é", b"{}", headers=headers)
    found: list[tuple[str | None, str, bool]] = []
    for _ in range(4):
        sources.append(NatsSource(url, subject=f"{name}.*"))
        delivery = await take_through_outages(sources[-1])
        found.append((delivery.incoming.event_id, delivery.incoming.destination, delivery.quarantined))
        if delivery.quarantined:
            await delivery.retry(delay=0, reason="not yet")
        await sources[-1].aclose()
    where = f"{name}.a%20é"
    assert found == [("theirs", where, quarantined) for quarantined in (False, False, True, False)]


async def put_large(url: str, name: str, spare: int, *, by_headers: bool = False) -> tuple[bytes, dict[str, str]]:
    """Publish a message whose body or headers fill the maximum of the server but for some bytes, to a stream that
    deletes on ack."""
    headers = {"eventId": "large", "tenant": "x" * 200}
    if by_headers:
        headers["tenant"] = "x" * (MAX_HEADERS - spare - 12 - len("eventId: large\r\n") - len("tenant: \r\n"))
    async with jetstream(url) as server:
        await server.add_stream(name=name, subjects=[name], retention=RetentionPolicy.WORK_QUEUE)
        block = 12 + sum(len(one) + len(value) + 4 for one, value in headers.items())
        body = b"small" if by_headers else b"x" * (server._nc.max_payload - block - spare)
        await server.publish(name, body, headers=headers)
    return body, headers


@pytest.mark.parametrize("by_headers", [False, True])
@pytest.mark.parametrize("spare", [0, 100, 300, 1000, 3000])
async def test_a_message_of_the_largest_size_is_retried_and_dead_lettered_with_its_body_and_headers(
    name: str, url: str, sources: list[NatsSource], spare: int, by_headers: bool
) -> None:
    body, headers = await put_large(url, name, spare, by_headers=by_headers)
    sources.append(NatsSource(url, subject=name))
    for attempts, delay in enumerate((0.0, 0.05, 0.0, 0.05)):
        delivery = await take(sources[0])
        got = delivery.incoming
        assert (got.event_id, got.body, got.attempts) == ("large", body, attempts)
        assert got.headers["tenant"] == headers["tenant"]
        await delivery.retry(delay=delay, reason="é" * 500)
    last = await take(sources[0])
    assert last.incoming.attempts == 4
    await last.reject("unusable")
    [dead] = await stored(url, f"{name}_pillarbox_dlq")
    assert (dead.body, {one: dead.headers.get(one) for one in headers}) == (body, headers)
    assert await count(url, name) == 0


@pytest.mark.parametrize("spare", [0, 200, 1000])
async def test_a_message_of_the_largest_size_that_crashes_its_consumers_is_handled_alone_and_whole(
    name: str, url: str, sources: list[NatsSource], spare: int
) -> None:
    body, headers = await put_large(url, name, spare)
    alone: list[bool] = []
    for _ in range(4):
        sources.append(NatsSource(url, subject=name))
        delivery = await take_through_outages(sources[-1])
        got = delivery.incoming
        assert (got.body, got.headers["tenant"], got.destination) == (body, headers["tenant"], name)
        alone.append(delivery.quarantined)
        await sources[-1].aclose()
    assert alone == [False, False, True, True]


async def test_a_cancelled_receive_keeps_the_message_that_it_was_moving_to_quarantine(
    name: str, url: str, sources: list[NatsSource], monkeypatch: pytest.MonkeyPatch
) -> None:
    await put(url, name, "a")
    for _ in range(2):
        sources.append(NatsSource(url, subject=name))
        await take(sources[-1])
        await sources[-1].aclose()
    moving = asyncio.Event()

    async def store_at_once(*_: object) -> bool:
        moving.set()
        return await asyncio.Event().wait()

    last = NatsSource(url, subject=name)
    sources.append(last)
    with monkeypatch.context() as patched:
        patched.setattr(NatsConsumerSession, "store_at_once", store_at_once)
        receiving = asyncio.create_task(last.receive())
        await moving.wait()
        receiving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await receiving
    delivery = await take(last)
    assert (delivery.incoming.event_id, delivery.quarantined) == ("a", True)


async def test_a_message_that_quarantine_refuses_is_handled_alone_and_holds_up_no_other(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    subjects = [f"pillarbox.{name}.pillarbox.{kind}" for kind in ("wait", "ready", "quarantine")]
    async with jetstream(url) as server:
        work = RetentionPolicy.WORK_QUEUE
        await server.add_stream(name=name, subjects=[name], retention=work)
        await server.add_stream(
            name=f"{name}_pillarbox_retry",
            subjects=subjects,
            retention=work,
            max_bytes=1,  # it is full
            discard=DiscardPolicy.NEW,
        )
        for one in ("crashes", "next"):
            await server.publish(name, b"{}", headers={"eventId": one})
    found: list[tuple[bool, int]] = []
    for _ in range(4):
        sources.append(NatsSource(url, subject=name, prefetch=1))
        crashing = await take(sources[-1])
        assert crashing.incoming.event_id == "crashes"
        found.append((crashing.quarantined, crashing.crashes))
        await sources[-1].aclose()
    assert found == [(False, 0), (False, 0), (True, 0), (True, 1)]
    sources.append(NatsSource(url, subject=name))
    last = [await take(sources[-1]) for _ in range(2)]
    assert [(one.incoming.event_id, one.quarantined, one.crashes) for one in last] == [
        ("crashes", True, 2),
        ("next", False, 0),
    ]
    for delivery in last:
        await delivery.ack()

    async def empty() -> bool:
        return await count(url, name) == 0

    await eventually(empty)


async def test_a_deleted_stream_of_dead_letters_is_declared_again(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    await put(url, name, "a")
    sources.append(NatsSource(url, subject=name))
    delivery = await take(sources[0])
    async with jetstream(url) as server:
        await server.delete_stream(f"{name}_pillarbox_dlq")
    async with asyncio.timeout(60):
        with pytest.raises(UnavailableError, match=r"no stream .*pillarbox\..*\.dead"):
            await delivery.reject("unusable")
    again = await take_through_outages(sources[0])
    assert again.incoming.event_id == "a"
    await again.reject("unusable")
    assert [one.event_id for one in await stored(url, f"{name}_pillarbox_dlq")] == ["a"]


async def test_a_stream_that_confirms_nothing_ends_the_session(name: str, url: str, sources: list[NatsSource]) -> None:
    await put(url, name, "a")
    async with jetstream(url) as server:
        await server.add_stream(
            name=f"{name}_pillarbox_dlq", subjects=[f"pillarbox.{name}.pillarbox.dead"], no_ack=True
        )
    sources.append(NatsSource(url, subject=name, reply_timeout="300ms"))
    delivery = await take(sources[0])
    async with asyncio.timeout(60):
        with pytest.raises(UnavailableError, match="did not answer"):
            await delivery.reject("unusable")
    assert (await take_through_outages(sources[0])).incoming.event_id == "a"


async def test_without_declare_a_source_needs_a_stream_for_its_dead_letters(
    name: str, url: str, sources: list[NatsSource]
) -> None:
    await put(url, name, "a")
    sources += [NatsSource(url, subject=name), NatsSource(url, subject=name, declare=False)]
    await sources[0].connect()
    async with jetstream(url) as server:
        await server.delete_stream(f"{name}_pillarbox_dlq")
        with pytest.raises(UnavailableError, match=r"no stream .*pillarbox\..*\.dead.*declare = true"):
            await sources[1].connect()
        await server.add_stream(name=f"{name}-dead", subjects=[f"pillarbox.{name}.*.dead"])
        await sources[1].connect()
