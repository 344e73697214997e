"""Consumers that are killed around their commit, by a message, or blocked by a handler: each effect once."""

from __future__ import annotations

import asyncio
import json
import signal
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pillarbox.schemes import open_transport
from pillarbox.testing.conformance.transports import outgoing
from tests.extremes.databases import number, rows
from tests.integration.consume.broker import remove_queues
from tests.integration.consume.processes import APP, ConsumerProcess
from tests.integration.kafka import topics
from tests.integration.nats.streams import stored_ids
from tests.integration.redis.reading import ids as entry_ids
from tests.servers.kafka import GROUP_SETTINGS, KafkaServer
from tests.servers.waiting import wait_until

BOUND = 120.0
BLOCKING_APP = Path(__file__).with_name("blocking_app.py")
PARTITIONS = 4
OTHERS = [f"e{n}" for n in range(20)]
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "rabbitmq": {"retry_delays": ["50ms", "100ms"], "prefetch": 1},
    "kafka": {"client": GROUP_SETTINGS},
    "nats": {"ack_wait": "1s"},
    "redis": {"claim_after": "1s", "check_interval": "50ms"},
}


@dataclass
class Shop:
    """A queue, a database with effects, and consumers in processes of their own."""

    engine: str
    server: Any
    database: str
    folder: Path
    queue: str
    started: list[ConsumerProcess]

    def send(self, *event_ids: str) -> None:
        asyncio.run(self._send(event_ids))

    async def _send(self, event_ids: Sequence[str]) -> None:
        transport = open_transport(self.server.url())
        [address] = transport.defaults(self.queue).values()
        headers = {"eventType": self.queue}
        made = [outgoing(one, address, event_type=self.queue, headers=headers, body=b"{}") for one in event_ids]
        batch = [
            one._replace(message=one.message._replace(destination=self.queue, key=one.message.event_id)) for one in made
        ]
        try:
            assert await transport.send(batch) == [None] * len(batch)
        finally:
            await transport.aclose()

    def start(self, app: Path = APP) -> ConsumerProcess:
        variables = {"BROKER": self.server.url(), "QUEUE": self.queue, "DATABASE": self.database}
        options = json.dumps(OPTIONS[self.engine])
        self.started.append(ConsumerProcess(self.folder, app=app, OPTIONS=options, **variables))
        return self.started[-1]

    def effects(self) -> list[str]:
        return sorted(str(event_id) for (event_id,) in rows(self.database, "SELECT event_id FROM effect"))

    def stop(self) -> None:
        """Let every running consumer drain; each must exit with 0."""
        running = [process for process in self.started if not process.ended]
        for process in running:
            process.terminate()
        assert [process.wait() for process in running] == [0] * len(running)


MakeShop = Callable[[str, str], Shop]


@pytest.fixture
def make_shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeShop]:
    made: list[Shop] = []

    def make(engine: str, store: str) -> Shop:
        server = request.getfixturevalue(f"{engine}_server")
        database = request.getfixturevalue(f"{store}_url")
        rows(database, "CREATE TABLE effect (event_id VARCHAR(200) NOT NULL)")
        shop = Shop(engine, server, database, tmp_path, f"test-{uuid.uuid4().hex[:12]}", [])
        if engine == "kafka":
            for name in (shop.queue, f"{shop.queue}.billing.retry", f"{shop.queue}.billing.dlq"):
                server.create_topic(name, PARTITIONS)
        made.append(shop)
        return shop

    yield make
    for shop in made:
        for process in shop.started:
            with suppress(ProcessLookupError):
                process.end()
        if shop.engine == "rabbitmq":
            remove_queues(shop.server.url(), shop.queue)


KILLED = [
    ("kafka", "postgres"),
    ("nats", "postgres"),
    ("redis", "postgres"),
    ("rabbitmq", "mariadb"),
    ("rabbitmq", "sqlite"),
]


@pytest.mark.parametrize(("engine", "store"), KILLED)
def test_a_crash_between_commit_and_acknowledgement_has_one_effect(
    make_shop: MakeShop, tmp_path: Path, engine: str, store: str
) -> None:
    shop = make_shop(engine, store)
    shop.send("a", "b")
    (tmp_path / "after-commit").touch()
    first = shop.start()
    assert first.wait(BOUND) == -signal.SIGKILL
    assert len(set(shop.effects())) == len(shop.effects()) >= 1
    second = shop.start()
    wait_until(lambda: "skipping" in second.log_text(), bound=BOUND, what="the duplicate is skipped")
    wait_until(lambda: shop.effects() == ["a", "b"], bound=BOUND, what="both have their effect")
    shop.stop()
    assert shop.effects() == ["a", "b"]


@pytest.mark.parametrize(("engine", "store"), KILLED)
def test_a_crash_before_the_commit_is_rolled_back_and_handled_again(
    make_shop: MakeShop, tmp_path: Path, engine: str, store: str
) -> None:
    shop = make_shop(engine, store)
    shop.send("a")
    (tmp_path / "before-commit").touch()
    first = shop.start()
    assert first.wait(BOUND) == -signal.SIGKILL
    assert shop.effects() == []
    shop.start()
    wait_until(lambda: shop.effects() == ["a"], bound=BOUND, what="the event is handled again")
    shop.stop()
    assert shop.effects() == ["a"]


@pytest.mark.parametrize("engine", ["kafka", "nats", "redis"])
def test_a_message_that_kills_its_consumer_is_dead_lettered(make_shop: MakeShop, engine: str) -> None:
    shop = make_shop(engine, "postgres")
    shop.send("poison", *OTHERS)
    kills = 0
    while True:
        process = shop.start()
        wait_until(
            lambda: process.ended or "dead-lettered event" in process.log_text(),  # noqa: B023 - called at once
            bound=BOUND,
            what="a crash or a dead letter",
        )
        if not process.ended:
            break
        kills += 1
        assert process.wait() == -signal.SIGKILL
    wait_until(lambda: len(shop.effects()) == len(OTHERS), bound=BOUND, what="the other messages are handled")
    shop.stop()
    # Twice among others, five times alone.
    assert 7 <= kills <= 9
    assert shop.effects() == sorted(OTHERS)
    if engine == "kafka":
        dead = topics.ids(topics.read_all(shop.server.bootstrap, f"{shop.queue}.billing.dlq"))
    elif engine == "nats":
        dead = asyncio.run(stored_ids(shop.server.url(), f"{shop.queue}_billing_dlq"))
    else:
        dead = entry_ids(shop.server, f"{shop.queue}.dlq")
    assert dead == ["poison"]


@pytest.mark.parametrize("engine", ["rabbitmq", "kafka", "nats", "redis"])
def test_a_handler_that_blocks_the_event_loop_leaves_the_others_to_another_consumer(
    make_shop: MakeShop, tmp_path: Path, engine: str
) -> None:
    """On Kafka the messages of the partitions that the blocked consumer has wait for it, on RabbitMQ those that it has
    prefetched: here none."""
    shop = make_shop(engine, "postgres")
    shop.send("block")
    shop.start(BLOCKING_APP)
    wait_until((tmp_path / "begun").exists, bound=BOUND, what="an event loop is blocked")
    shop.start(BLOCKING_APP)
    shop.send(*OTHERS)
    if isinstance(shop.server, KafkaServer):
        wait_until(lambda: served(shop) >= PARTITIONS // 2, bound=BOUND, what="other partitions are served")
    else:
        wait_until(lambda: shop.effects() == sorted(OTHERS), bound=BOUND, what="every other message is handled")
    if engine in ("nats", "redis"):
        locks = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        wait_until(lambda: number(shop.database, locks) > 0, bound=BOUND, what="the other consumer has it, too")
    assert "block" not in shop.effects()
    (tmp_path / "go-on").touch()
    wait_until(lambda: shop.effects() == sorted(["block", *OTHERS]), bound=BOUND, what="every message is handled")
    shop.stop()
    assert shop.effects() == sorted(["block", *OTHERS])


def served(shop: Shop) -> int:
    """The number of partitions whose messages are all handled, but for the one that blocks."""
    left: defaultdict[int | None, set[str]] = defaultdict(set)
    done = {"block", *shop.effects()}
    for message in topics.read_all(shop.server.bootstrap, shop.queue):
        left[message.partition()] |= {topics.text(message, "eventId")} - done
    return sum(not ids for ids in left.values())
