"""A table bloated by a long transaction: delivered rows that the database cannot remove yet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing, closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from pillarbox import Event
from pillarbox.core.fetch import Bounds, Ready
from pillarbox.statements import Names
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.postgres.statements import PostgresStatements
from pillarbox.stores.postgres.store import KEPT_PLANS
from tests.extremes.bulk import BULK
from tests.extremes.conftest import MakeScene
from tests.extremes.databases import connected, number, rows
from tests.extremes.receiving import from_queue
from tests.extremes.scene import Scene
from tests.plans.explain import Explainer
from tests.servers.rabbitmq import RabbitMQServer

BATCH = 500
PENDING = 4 * BATCH
DELIVERED = 20_000
HOURLY_PARTS = 4
HOUR = 360_000
"""Events in an hour of 100 per second."""
TIMES = 3
LANES = list(range(64))
BYTES = [8 * 1024 * 1024, 1 << 62]
STATEMENTS = PostgresStatements(Names(schema="public"))
# As on the store's own connection.
PLANNED_AS_KEPT = "".join(f"SET LOCAL {name} = {value};" for name, value in KEPT_PLANS.items())
RECORD = """
INSERT INTO outbox_message (event_type, payload, ordering_key)
SELECT 'moved', convert_to(repeat('x', 200), 'UTF8'), 'key-' || g % 2000 FROM generate_series(1, {}) g
"""
BYTES_OF_TABLE = {
    "postgresql": "SELECT pg_total_relation_size('outbox_message')",
    "mariadb": "SELECT data_length + index_length FROM information_schema.tables"
    " WHERE table_schema = database() AND table_name = 'outbox_message'",
}
STATUS = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = '{}'"


@contextmanager
def long_transaction(url: str) -> Iterator[None]:
    """A transaction that may still see every row which is deleted while the block is open."""
    begin = "BEGIN" if url.startswith("sqlite:") else "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    with connected(url) as reader, closing(reader.cursor()) as cursor:
        cursor.execute(begin)
        cursor.execute("SELECT count(*) FROM outbox_message")
        cursor.fetchall()
        yield


async def pages(url: str) -> int:
    """The pages that a fetch of a batch reads; the steps of SQLite, in hundreds, because it does not count pages."""
    if url.startswith("sqlite:"):
        return sum(await BULK["sqlite"].measure(url, ["ready"]))
    if url.startswith("mariadb:"):
        read = STATUS.format("INNODB_BUFFER_POOL_READ_REQUESTS")
        async with aclosing(MariaDBStore(url)) as store:
            wanted = Ready(lanes=LANES, bounds=Bounds(limit=BATCH, quota=BATCH))
            await store.messages.fetch(wanted)
            before = number(url, read)
            assert len(await store.messages.fetch(wanted)) == BATCH
            return number(url, read) - before
    return await pages_of_postgres(url, marks=True)


async def pages_of_postgres(url: str, *, marks: bool) -> int:
    """marks: as by a relay whose last fetches were slow."""
    bounds = [LANES, BATCH, BATCH, *BYTES, [], []]
    known: tuple[object, ...] | None = None
    async with aclosing(PostgresStore(url)) as store:
        for _ in range(3 if marks else 0):
            await store.messages.low_water_marks.search(LANES)
        known = await store.messages.low_water_marks.known(LANES)
    assert (known is not None) == marks
    fetch = STATEMENTS.get("fetch_ready", *(["from_low_water_marks"] if known else []))
    prepare = PLANNED_AS_KEPT
    if known is not None:
        # The marks hold for the session that found them.
        session, *_ = str(known[1]).split()
        prepare += f"SET LOCAL pillarbox.session = '{session}';"
    cost = await Explainer(url).cost(fetch, *bounds, *(known or ()), prepare=prepare)
    assert cost.returned == BATCH
    return cost.pages


def clean(url: str) -> None:
    """Let the database remove what no transaction can see, and count its rows."""
    if url.startswith("mariadb:"):
        rows(url, "ANALYZE TABLE outbox_message")
    elif url.startswith("postgresql:"):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE outbox_message")


def size(url: str) -> int:
    """The bytes that grow: of the table, or of the write-ahead log of SQLite."""
    if url.startswith("sqlite:"):
        return Path(url.removeprefix("sqlite:///") + "-wal").stat().st_size
    return number(url, BYTES_OF_TABLE[url.partition(":")[0]])


async def deliver_and_measure(scene: Scene) -> int:
    """Deliver as many events as in an hour, then return the pages of a fetch of further ones.

    Most of them by SQL: rows that are inserted and deleted, as by producers and a relay.
    """
    before = size(scene.store)
    scene.write(DELIVERED)
    relay = scene.start()
    scene.wait_drained()
    relay.stop()
    for _ in range(HOURLY_PARTS):
        load(scene.store, (HOUR - DELIVERED) // HOURLY_PARTS)
        rows(scene.store, "DELETE FROM outbox_message")
    scene.write(PENDING)
    clean(scene.store)
    assert size(scene.store) > TIMES * before, "nothing grew"
    return await pages(scene.store)


def load(url: str, count: int) -> None:
    engine = "postgres" if url.startswith("postgresql:") else url.partition(":")[0]
    BULK[engine].load(url, "moved-", count, event_type="moved")


@pytest.fixture(params=["postgres", "mariadb", "sqlite"])
def scene(request: pytest.FixtureRequest, make_scene: MakeScene, rabbitmq_server: RabbitMQServer) -> Scene:
    store = str(request.getfixturevalue(f"{request.param}_url"))
    return make_scene(store=store, transport=rabbitmq_server.url(), keys=PENDING)


async def test_a_fetch_reads_at_most_three_times_the_pages(scene: Scene) -> None:
    scene.write(PENDING)
    clean(scene.store)
    before = await pages(scene.store)
    with long_transaction(scene.store):
        after = await deliver_and_measure(scene)
    print(f"a fetch reads {after}, before {before}")
    assert after <= TIMES * before


async def test_without_low_water_marks_a_fetch_of_postgresql_reads_more(postgres_url: str) -> None:
    rows(postgres_url, RECORD.format(PENDING))
    clean(postgres_url)
    before = await pages_of_postgres(postgres_url, marks=False)
    with long_transaction(postgres_url):
        rows(postgres_url, RECORD.format(DELIVERED))
        rows(postgres_url, "DELETE FROM outbox_message")
        rows(postgres_url, RECORD.format(PENDING))
        clean(postgres_url)
        assert await pages_of_postgres(postgres_url, marks=False) > TIMES * before
        assert await pages_of_postgres(postgres_url, marks=True) <= TIMES * before


@pytest.mark.parametrize("scene", ["postgres", "mariadb"], indirect=True)
async def test_an_event_of_a_long_writer_is_delivered(scene: Scene, rabbitmq_server: RabbitMQServer) -> None:
    scene.write(PENDING)
    scene.start()
    with connected(scene.store) as writer:
        [late] = scene.outbox.record(writer, Event(scene.event_type, {}, key="late"))
        scene.write(2 * PENDING)
        scene.wait_drained()
        writer.commit()
    scene.ledger.commit([("late", late)])
    [last] = scene.write(1)
    scene.wait_until(lambda: not scene.waiting() & {late, last}, what="the event of the long writer is delivered")
    scene.stop()
    scene.assert_sound(from_queue(rabbitmq_server.url(), scene.event_type))


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
    if scene.store.startswith("sqlite:"):
        return rows(scene.store, "PRAGMA wal_checkpoint(TRUNCATE)") == [(0, 0, 0)]
    return True
