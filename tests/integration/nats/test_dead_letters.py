"""Dead letters of consumers: counted, listed and moved back to their group, over the library and the command line."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from pillarbox.core.errors import NackedError, RejectedError
from pillarbox.testing.conformance.sources.receive import take
from pillarbox.transports.nats import NatsDeadLetters, NatsSource, Stream
from tests.integration.cli.running import pillarbox
from tests.integration.nats.conftest import MakeTransport
from tests.integration.nats.streams import count, jetstream, put, stored_ids


@pytest.fixture
async def dead(name: str, url: str) -> AsyncIterator[NatsDeadLetters]:
    """Dead letters: e0, e1 and e2 of billing, e0 of audit."""
    await put(url, name, "e0", "e1", "e2")
    for group, number in (("billing", 3), ("audit", 1)):
        async with aclosing(NatsSource(url, subject=name, group=group)) as source:
            for _ in range(number):
                await (await take(source)).reject(f"refused by {group}: ü")
    async with aclosing(NatsDeadLetters(url)) as dead:
        yield dead


async def listed(dead: NatsDeadLetters, queue: str, *, limit: int = 100, prefetch: int = 100) -> list[str]:
    async with dead.receive(queue, limit=limit, prefetch=prefetch) as received_ones:
        return [str(received.dead_letter.event_id) async for received in received_ones]


async def test_dead_letters_are_counted_by_group_and_by_subject(dead: NatsDeadLetters, name: str) -> None:
    assert await dead.depth(f"{name}_billing_dlq") == 3
    assert await dead.depth(f"{name}.dlq") == 4
    assert [await dead.depth(queue) for queue in (f"{name}_x_dlq", f"{name}-x.dlq", "a b", "a.b", "..dlq")] == [
        None
    ] * 5


async def test_dead_letters_are_listed_in_order_with_their_facts_and_stay(dead: NatsDeadLetters, name: str) -> None:
    for _ in range(2):
        assert await listed(dead, f"{name}_billing_dlq") == ["e0", "e1", "e2"]
    assert await listed(dead, f"{name}_billing_dlq", limit=2) == ["e0", "e1"]
    assert await listed(dead, f"{name}_billing_dlq", prefetch=1) == ["e0"]
    assert sorted(await listed(dead, f"{name}.dlq")) == ["e0", "e0", "e1", "e2"]
    async with dead.receive(f"{name}_audit_dlq", limit=1, prefetch=1) as received_ones:
        [found] = [received.dead_letter async for received in received_ones]
    assert (found.reason, found.attempts, found.body, found.size) == ("refused by audit: ü", 1, b"{}", 2)
    assert found.original_queue == f"pillarbox.{name}.audit.ready"
    assert found.dead_lettered_at is not None


async def test_the_dead_letter_of_a_cloudevent_shows_its_id(name: str, url: str) -> None:
    await put(url, name)
    attributes = {"ce-specversion": "1.0", "ce-id": "c1", "ce-type": "shop.order", "ce-source": "/shop"}
    async with jetstream(url) as server:
        await server.publish(name, b"{}", headers=attributes)
    async with aclosing(NatsSource(url, subject=name, group="billing")) as source:
        await (await take(source)).reject("refused")
    async with aclosing(NatsDeadLetters(url)) as dead:
        assert await listed(dead, f"{name}_billing_dlq") == ["c1"]


async def test_a_moved_dead_letter_returns_to_its_group_for_one_more_attempt(
    dead: NatsDeadLetters, name: str, url: str
) -> None:
    queue = f"{name}_billing_dlq"
    async with dead.receive(queue, limit=100, prefetch=100) as received_ones:
        async for received in received_ones:
            if received.dead_letter.event_id == "e1":
                await received.move(str(received.dead_letter.original_queue))
    assert await listed(dead, queue) == ["e0", "e2"]
    async with aclosing(NatsSource(url, subject=name, group="billing")) as source:
        again = await take(source)
        assert (again.incoming.event_id, again.incoming.attempts) == ("e1", 1)
        await again.ack()


async def test_a_dead_letter_of_a_stream_that_is_created_again_is_no_duplicate_of_an_earlier_one(
    name: str, url: str
) -> None:
    queue, elsewhere = f"{name}_billing_dlq", f"{name}-elsewhere"
    await put(url, elsewhere)
    for event_id in ("old", "new"):
        await put(url, name, event_id)
        async with aclosing(NatsSource(url, subject=name, group="billing")) as source:
            await (await take(source)).reject("refused")
        async with aclosing(NatsDeadLetters(url)) as dead, dead.receive(queue, limit=1, prefetch=1) as received_ones:
            async for received in received_ones:
                await received.move(elsewhere)
        async with jetstream(url) as server:
            for stream in (name, queue):
                await server.delete_stream(stream)
    assert await stored_ids(url, elsewhere) == ["old", "new"]


async def test_a_dead_letter_that_cannot_be_moved_stays(
    dead: NatsDeadLetters, name: str, url: str, make: MakeTransport
) -> None:
    full = f"{name}-full"
    await make(streams=[Stream(name=full, subjects=[full], max_msgs=1)]).declare_topology()
    async with jetstream(url) as server:
        await server.publish(full, b"")
    async with dead.receive(f"{name}_audit_dlq", limit=1, prefetch=1) as received_ones:
        async for received in received_ones:
            for target in (f"{name}-nowhere", "a b", ""):
                with pytest.raises(RejectedError):
                    await received.move(target)
            with pytest.raises(NackedError):
                await received.move(full)
    assert await count(url, f"{name}_audit_dlq") == 1


@pytest.mark.usefixtures("dead")
async def test_the_command_line_lists_and_requeues_them(name: str, url: str) -> None:
    def run(*arguments: str) -> dict[str, object]:
        done = pillarbox("dead", "broker", *arguments, "--json", PILLARBOX_TRANSPORT=url)
        assert done.returncode == 0, done.stderr
        found: dict[str, object] = json.loads(done.stdout)
        return found

    found = await asyncio.to_thread(run, "list", "--queue", f"{name}.dlq")
    assert isinstance(found["dead_letters"], list)
    assert len(found["dead_letters"]) == 4
    await asyncio.to_thread(run, "requeue", "--queue", f"{name}_billing_dlq", "--all", "--yes")
    assert (await count(url, f"{name}_billing_dlq"), await count(url, f"{name}_audit_dlq")) == (0, 1)


@pytest.mark.usefixtures("dead")
async def test_the_status_shows_how_many_dead_letters_a_destination_has(name: str, url: str, tmp_path: Path) -> None:
    (tmp_path / "pillarbox.toml").write_text(
        f"[store]\nurl = 'sqlite:///shop.db'\n[transports.nats]\nurl = '{url}'\n[destinations.d]\nsubject = '{name}'\n"
    )

    def run(*arguments: str) -> str:
        done = pillarbox(*arguments, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    await asyncio.to_thread(run, "schema", "apply")
    shown = json.loads(await asyncio.to_thread(run, "status", "--json"))
    assert shown["broker_dead_letters"] == [{"transport": "nats", "queue": f"{name}.dlq", "depth": 4, "error": None}]
