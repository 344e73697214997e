"""A table bloated by a long transaction: delivered rows that the database cannot remove yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing, closing, contextmanager

import psycopg
import pytest

from pillarbox.core.fetch import Bounds, Ready
from pillarbox.statements import Names
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.postgres.statements import PostgresStatements
from tests.extremes.conftest import MakeScene
from tests.extremes.databases import connected, number, rows
from tests.extremes.receiving import from_queue
from tests.extremes.scene import Scene
from tests.plans.explain import Explainer
from tests.servers.rabbitmq import RabbitMQServer

BATCH = 500
PENDING = 4 * BATCH
DELIVERED = 20_000
TIMES = 3
LANES = list(range(64))
BYTES = [8 * 1024 * 1024, 1 << 62]
FETCH = PostgresStatements(Names(schema="public")).get("fetch_ready")
STATUS = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = '{}'"
NOT_BOUNDED = (
    "every fetch begins at the start of its lanes, because a transaction may commit late, and skips all delivered rows"
    " that a long transaction may still see"
)


@contextmanager
def long_transaction(url: str) -> Iterator[None]:
    """A transaction that may still see every row which is deleted while the block is open."""
    with connected(url) as reader, closing(reader.cursor()) as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT count(*) FROM outbox_message")
        cursor.fetchall()
        yield


async def pages(url: str) -> int:
    """The pages that a fetch of a batch reads."""
    if url.startswith("mariadb:"):
        read = STATUS.format("INNODB_BUFFER_POOL_READ_REQUESTS")
        async with aclosing(MariaDBStore(url)) as store:
            wanted = Ready(lanes=LANES, bounds=Bounds(limit=BATCH, quota=BATCH))
            await store.messages.fetch(wanted)
            before = number(url, read)
            assert len(await store.messages.fetch(wanted)) == BATCH
            return number(url, read) - before
    cost = await Explainer(url).cost(FETCH, LANES, BATCH, BATCH, *BYTES, [], [])
    assert cost.returned == BATCH
    return cost.pages


def clean(url: str) -> None:
    """Let the database remove what no transaction can see, and count its rows."""
    if url.startswith("mariadb:"):
        rows(url, "ANALYZE TABLE outbox_message")
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE outbox_message")


async def deliver_and_measure(scene: Scene) -> int:
    """Deliver many events, then return the pages of a fetch of further ones."""
    scene.write(DELIVERED)
    relay = scene.start()
    scene.wait_drained()
    relay.stop()
    scene.write(PENDING)
    clean(scene.store)
    return await pages(scene.store)


@pytest.fixture(params=["postgres", "mariadb"])
def scene(request: pytest.FixtureRequest, make_scene: MakeScene, rabbitmq_server: RabbitMQServer) -> Scene:
    store = str(request.getfixturevalue(f"{request.param}_url"))
    return make_scene(store=store, transport=rabbitmq_server.url(), keys=PENDING)


async def test_a_fetch_reads_at_most_three_times_the_pages(request: pytest.FixtureRequest, scene: Scene) -> None:
    if not scene.store.startswith("mariadb:"):
        request.applymarker(pytest.mark.xfail(strict=True, reason=NOT_BOUNDED))
    scene.write(PENDING)
    clean(scene.store)
    before = await pages(scene.store)
    with long_transaction(scene.store):
        after = await deliver_and_measure(scene)
    assert after <= TIMES * before


async def test_nothing_is_lost_and_fetches_recover(scene: Scene, rabbitmq_server: RabbitMQServer) -> None:
    scene.write(PENDING)
    clean(scene.store)
    before = await pages(scene.store)
    with long_transaction(scene.store):
        await deliver_and_measure(scene)
    scene.wait_until(lambda: is_removed(scene), what="the delivered rows are removed")
    after = await pages(scene.store)
    assert after <= TIMES * before
    scene.start()
    scene.wait_drained()
    scene.stop()
    scene.assert_sound(from_queue(rabbitmq_server.url(), scene.event_type))


def is_removed(scene: Scene) -> bool:
    clean(scene.store)
    if scene.store.startswith("mariadb:"):
        return number(scene.store, STATUS.format("INNODB_HISTORY_LIST_LENGTH")) < 100
    return True
