"""Whatever a plain INSERT puts into the table is delivered or dead-lettered, its neighbours flow, lists show it."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import aclosing, closing, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pillarbox import Handlers, NoRetry, Relay, RelayConfig, Route
from pillarbox.admin.admin import AdminStore
from pillarbox.admin.dead_letters import DeadLetterFilter
from pillarbox.admin.listing import EventFilter, Position
from pillarbox.ops import exports
from pillarbox.stores.postgres import PostgresStore
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.lookup import find_event
from pillarbox.testing.waiting import eventually
from pillarbox.transports.rabbitmq import Queue, RabbitMQTransport
from tests.integration.relay.strange_rows import IDS, strange_row
from tests.servers.rabbitmq import RabbitMQServer

ROWS = 150
NEIGHBOURS = [f"neighbour {number}" for number in range(30)]
CONFIG = RelayConfig(heartbeat_interval="200ms", lease="12s")


def rows_of(seed: int, id_column: str) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    rows = [strange_row(rng, number) for number in range(ROWS)]
    rows += [{"event_id": f"id {n}", "event_type": "t", "payload": b"{}", id_column: n} for n in IDS]
    plain: dict[str, Any] = {"event_type": "t", "payload": b"{}"}
    rows += [plain | {"event_id": name, "ordering_key": f"k{n % 7}"} for n, name in enumerate(NEIGHBOURS)]
    rng.shuffle(rows)
    return rows


@contextmanager
def older_than_its_bounds(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Like an upgraded installation: rows from before the constraints on times and ids."""
    bounds = connection.execute(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'outbox_message'::regclass"
        " AND conname IN ('outbox_message_times_ck', 'outbox_message_id_ck')"
    ).fetchall()
    for name, _ in bounds:
        connection.execute(f"ALTER TABLE outbox_message DROP CONSTRAINT {name}".encode())
    yield
    for name, definition in bounds:
        connection.execute(f"ALTER TABLE outbox_message ADD CONSTRAINT {name} {definition} NOT VALID".encode())


async def ended(store: AdminStore) -> bool:
    """Nothing waits any more but what an INSERT itself has blocked."""
    page = await store.admin.events.list(EventFilter(), limit=500)
    return all(event.status in ("PUBLISHED", "FAILED") for event in page.events)


async def check(store: AdminStore, inserted: set[str]) -> None:
    """Every event has an outcome, and every view can show it."""
    listed: dict[str, str] = {}
    after: Position | None = None
    for _ in count():
        page = await store.admin.events.list(EventFilter(), limit=50, after=after)
        listed |= {event.event_id: event.status for event in page.events}
        if (after := page.after) is None:
            break
    assert set(listed) == inserted
    assert {listed[name] for name in NEIGHBOURS} == {"PUBLISHED"}
    dead = await store.admin.dead_letters.list(DeadLetterFilter(), limit=500)
    details = [*await store.admin.dead_letters.details([dead_letter.id for dead_letter in dead.dead_letters])]
    assert len(details) == len(dead.dead_letters)
    for event_id in inserted:
        details += (await store.admin.events.show(event_id)).events
        assert await find_event(store, event_id)
    for detail in details:
        exports.event_detail(detail)
        exports.content(detail)
    assert len(await store.admin.archive.read("dead", older=-60, limit=500)) == len(dead.dead_letters)
    await store.admin.archive.read("history", older=-60, limit=500)
    await store.admin.inspection.overview()
    await store.admin.keys.busiest()


@pytest.mark.parametrize(("seed", "upgraded"), [(1, False), (2, False), (3, True), (4, True)])
async def test_any_row_in_postgresql_reaches_an_outcome_without_affecting_others(
    postgres_url: str, rabbitmq_server: RabbitMQServer, seed: int, upgraded: bool
) -> None:
    inserted = set()
    with (
        psycopg.connect(postgres_url, autocommit=True) as connection,
        older_than_its_bounds(connection) if upgraded else nullcontext(),
    ):
        for row in rows_of(seed, "id"):
            insert = f"INSERT INTO outbox_message ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})"
            try:
                connection.execute(insert.encode(), [*row.values()])
            except (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError):
                continue  # rejected by the insert
            inserted.add(row["event_id"])
    assert inserted.issuperset(NEIGHBOURS)
    queue = f"any row {seed}"
    async with (
        aclosing(PostgresStore(postgres_url)) as store,
        aclosing(RabbitMQTransport(rabbitmq_server.url(), queues=[Queue(name=queue)])) as rabbit,
    ):
        relay = Relay(
            store=store,
            transports={"rabbit": rabbit},
            destinations={name: RabbitMQTransport.to(exchange="", routing_key=queue) for name in ("one", "two")},
            routes=[Route(event_type="a*", to=["one", "two"]), Route(to=["one"])],
            retry=NoRetry(),
            config=CONFIG,
        )
        async with relay:
            await eventually(lambda: ended(store), within=90, pause=0.1)
        await check(store, inserted)
        dead = await store.admin.dead_letters.list(DeadLetterFilter(), limit=500)
        undecodable = [dead_letter.id for dead_letter in dead.dead_letters if "cannot be decoded" in dead_letter.error]
        assert bool(undecodable) is upgraded
        # What was corrected on the way to the dead letters is within the bounds.
        assert await store.admin.dead_letters.retry(undecodable) == len(undecodable)


@pytest.mark.parametrize("seed", [1, 2])
async def test_any_row_in_sqlite_reaches_an_outcome_without_affecting_others(tmp_path: Path, seed: int) -> None:
    handlers = Handlers()

    @handlers.on("*", name="one")
    async def one(event: object, context: object) -> None:
        dict(event.headers)  # type: ignore[attr-defined]

    @handlers.on("a*", name="two")
    async def two(event: object, context: object) -> None:
        pass

    inserted = set()
    async with aclosing(SqliteStore(tmp_path / "shop.db")) as store:
        await store.schema.apply()
        with closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as connection:
            for row in rows_of(seed, "row_id"):
                values = ", ".join(["?"] * len(row))
                try:
                    connection.execute(
                        f"INSERT INTO outbox_message ({', '.join(row)}) VALUES ({values})", [*row.values()]
                    )
                except (sqlite3.IntegrityError, OverflowError):
                    continue
                inserted.add(row["event_id"])
        assert inserted.issuperset(NEIGHBOURS)
        async with Relay(store=store, transports={"handlers": handlers}, retry=NoRetry(), config=CONFIG):
            await eventually(lambda: ended(store), within=90, pause=0.1)
        await check(store, inserted)
