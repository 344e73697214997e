"""Dead letters on Kafka are counted and listed where they are: nothing is consumed, committed or moved."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pillarbox.core.errors import RejectedError, UnavailableError
from pillarbox.testing.conformance.sources.receive import take
from pillarbox.transports.kafka import KafkaDeadLetters
from tests.integration.cli.running import fresh_pillarbox
from tests.integration.kafka.conftest import MakeSource
from tests.integration.kafka.topics import new_topic, put
from tests.servers.kafka import KafkaServer
from tests.servers.ports import free_port


@pytest.fixture
async def dead(server: KafkaServer) -> AsyncIterator[KafkaDeadLetters]:
    dead_letters = KafkaDeadLetters(server.url())
    yield dead_letters
    await dead_letters.aclose()


async def rejected(server: KafkaServer, listen: MakeSource, topic: str, group: str, *names: str) -> None:
    """Have a group dead-letter these events, which no other message of the topic precedes."""
    headers = [("eventType", b"order.placed"), ("content-type", b"text/x")]
    put(server.bootstrap, topic, [(b"\xff\x00", [("eventId", name.encode()), *headers]) for name in names])
    source = listen(topic, group)
    for name in names:
        await (await take(source)).reject(f"reason of {name}")
    await source.aclose()


async def ids(dead: KafkaDeadLetters, queue: str, *, limit: int = 100, prefetch: int = 100) -> list[str | None]:
    async with dead.receive(queue, limit=limit, prefetch=prefetch) as messages:
        return [received.dead_letter.event_id async for received in messages]


async def test_dead_letters_are_listed_in_order_with_their_reason_and_stay(
    server: KafkaServer, dead: KafkaDeadLetters, listen: MakeSource, topic: str
) -> None:
    await rejected(server, listen, topic, "billing", "e0", "e1", "e2")
    queue = f"{topic}.billing.dlq"
    assert await dead.depth(queue) == 3
    async with dead.receive(queue, limit=100, prefetch=100) as messages:
        found = [received.dead_letter async for received in messages]
    assert [one.event_id for one in found] == ["e0", "e1", "e2"]
    first = found[0]
    assert (first.queue, first.reason, first.attempts) == (queue, "reason of e0", 1)
    assert (first.event_type, first.original_queue, first.content_type) == ("order.placed", topic, "text/x")
    assert (first.body, first.size, first.dead_lettered_at is not None) == (b"\xff\x00", 2, True)
    assert await ids(dead, queue, limit=2) == ["e0", "e1"]
    assert await ids(dead, queue, prefetch=1) == ["e0"]
    assert (await dead.depth(queue), await ids(dead, queue)) == (3, ["e0", "e1", "e2"])


async def test_a_topic_names_the_dead_letters_of_all_its_groups(
    server: KafkaServer, dead: KafkaDeadLetters, listen: MakeSource, topic: str
) -> None:
    await rejected(server, listen, topic, "billing", "e0")
    source = listen(topic, "search")
    await (await take(source)).reject("unknown")
    await source.aclose()
    assert await dead.depth(f"{topic}.dlq") == 2
    assert await ids(dead, f"{topic}.dlq") == ["e0", "e0"]


async def test_dead_letters_of_several_partitions_are_all_listed(server: KafkaServer, dead: KafkaDeadLetters) -> None:
    topic = new_topic()
    server.create_topic(f"{topic}.g.dlq", 3)
    keys = [f"k{n}".encode() for n in range(30)]
    put(server.bootstrap, f"{topic}.g.dlq", [(b"", [("eventId", key)]) for key in keys], keys=keys)
    assert await dead.depth(f"{topic}.g.dlq") == 30
    assert sorted(str(one) for one in await ids(dead, f"{topic}.g.dlq")) == sorted(f"k{n}" for n in range(30))


async def test_a_topic_that_does_not_exist_has_no_depth(dead: KafkaDeadLetters) -> None:
    assert await dead.depth(f"{new_topic()}.dlq") is None
    assert await ids(dead, f"{new_topic()}.dlq") == []


async def test_a_dead_letter_cannot_be_moved(
    server: KafkaServer, dead: KafkaDeadLetters, listen: MakeSource, topic: str
) -> None:
    await rejected(server, listen, topic, "billing", "e0")
    async with dead.receive(f"{topic}.dlq", limit=1, prefetch=1) as messages:
        async for received in messages:
            with pytest.raises(RejectedError, match="replay the event"):
                await received.move(topic)


async def test_a_cluster_that_does_not_respond_is_unavailable() -> None:
    dead = KafkaDeadLetters(f"kafka://app:s3cret@127.0.0.1:{free_port()}", connect_timeout="1s", reply_timeout="1s")
    with pytest.raises(UnavailableError) as caught:
        await dead.depth("orders.dlq")
    assert "s3cret" not in str(caught.value)
    await dead.aclose()


async def test_the_command_line_shows_them(server: KafkaServer, listen: MakeSource, topic: str, tmp_path: Path) -> None:
    await rejected(server, listen, topic, "billing", "e0", "e1")
    settings = tmp_path / "pillarbox.toml"
    settings.write_text(f'[transports.kafka]\nurl = "{server.url()}"\n\n[destinations.orders]\ntopic = "{topic}"\n')
    found = await asyncio.to_thread(fresh_pillarbox, "dead", "broker", "list", "--json", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    listed = json.loads(found.stdout)["dead_letters"]
    assert [(one["event_id"], one["reason"]) for one in listed] == [("e0", "reason of e0"), ("e1", "reason of e1")]
