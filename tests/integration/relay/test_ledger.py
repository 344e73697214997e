"""The ledger on a real database: crashes, locks, deadlocks and lost connections lose nothing."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import asyncpg
import psycopg
import pytest

from pillarbox import Event, Handlers, Outbox, Relay, RelayConfig
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.observations import Observation, StoreFailed
from pillarbox.core.outcome import DELIVERED, Resolved
from pillarbox.core.store import PriorSend
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.conformance.lane_owner import Owner
from pillarbox.testing.waiting import eventually
from pillarbox.transports.handlers import HandlerContext, ReceivedEvent
from tests.databases import Sql
from tests.integration.cli.running import fresh_pillarbox
from tests.integration.rabbitmq.consumer import take_all
from tests.servers.rabbitmq import RabbitMQServer

CONFIG = RelayConfig(lease="6s", heartbeat_interval="200ms", send_timeout="2s", poll_interval="50ms")

BOTH = """
[store]
ledger = true

[relay]
lease = "3s"
heartbeat_interval = "200ms"
send_timeout = "1s"

[transports.rabbit]
url = "{broker}"
[[transports.rabbit.queues]]
name = "{queue}"

[transports.handlers]
import = "noting:handlers"

[destinations.far]
transport = "rabbit"
routing_key = "{queue}"

[destinations.near]
transport = "handlers"
handler = "near"

[[routes]]
event_type = "*"
to = ["far", "near"]
"""

NOTING = """
from pillarbox import Handlers

handlers = Handlers()

@handlers.on("*", name="near")
def note(event, context):
    with open("notes.txt", "a") as notes:
        notes.write(event.event_id + "\\n")
"""


@pytest.fixture
async def sql(postgres_url: str) -> AsyncIterator[Sql]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


@pytest.mark.parametrize("point", ["before-send:2", "after-confirm:1", "after-confirm:2", "before-settle:1"])
def test_an_event_reaches_both_destinations_after_a_crash_in_between(
    postgres_url: str, rabbitmq_server: RabbitMQServer, tmp_path: Path, point: str
) -> None:
    queue = f"ledger {point}"
    (tmp_path / "pillarbox.toml").write_text(BOTH.format(broker=rabbitmq_server.url(), queue=queue))
    (tmp_path / "noting.py").write_text(NOTING)
    with psycopg.connect(postgres_url) as connection:
        Outbox().record(connection, Event("order.placed", {}, event_id="evt-001"))
    killed = fresh_pillarbox(
        "relay", "--until-empty", cwd=tmp_path, PILLARBOX_STORE=postgres_url, PILLARBOX_FAILPOINT=point
    )
    assert killed.returncode == -signal.SIGKILL
    finished = fresh_pillarbox("relay", "--until-empty", cwd=tmp_path, PILLARBOX_STORE=postgres_url)
    assert finished.returncode == 0, finished.stderr
    assert {taken.properties.message_id for taken in take_all(rabbitmq_server.url(), queue)} == {"evt-001"}
    assert set((tmp_path / "notes.txt").read_text().split()) == {"evt-001"}
    with psycopg.connect(postgres_url) as connection:
        noted = connection.execute("SELECT destination, status FROM outbox_ledger ORDER BY destination").fetchall()
    assert noted == [("far", "SUCCESS"), ("near", "SUCCESS")]


class Shop:
    """A relay with a ledger, and the events of its handler."""

    def __init__(self, store: PostgresStore) -> None:
        self.handled: list[str] = []
        self.failures: list[str] = []
        handlers = Handlers()

        @handlers.on("*", name="shop")
        async def handle(event: ReceivedEvent, context: HandlerContext) -> None:
            self.handled.append(event.event_id)

        self.relay = Relay(store=store, transports={"handlers": handlers}, config=CONFIG, observers=[self._note])

    def _note(self, observation: Observation) -> None:
        if isinstance(observation, StoreFailed):
            self.failures.append(observation.error)

    async def failed(self) -> bool:
        return bool(self.failures)

    async def has(self, number: int) -> bool:
        return len(self.handled) >= number


async def record(sql: Sql, number: int) -> None:
    async with sql.transaction():
        await Outbox().arecord(sql, *(Event("a", {}, event_id=f"{n:03}", key="k") for n in range(number)))


async def test_an_entry_has_start_and_result(sql: Sql, postgres_url: str) -> None:
    async with aclosing(PostgresStore(postgres_url, ledger=True)) as store:
        assert store.ledger is not None
        owner = await Owner.of(store)
        await sql.execute("INSERT INTO outbox_message (event_id, event_type, payload) VALUES ('evt-001', 'a', '{}')")
        [message] = await owner.ready()
        await store.ledger.begin([Resolved(message, "orders")])
        begun = await sql.fetchrow("SELECT * FROM outbox_ledger")
        assert begun is not None
        assert (begun["event_id"], begun["destination"], begun["status"]) == ("evt-001", "orders", "PROCESSING")
        assert (begun["id"] > 0, begun["processed_at"]) == (True, None)
        await owner.settle(DELIVERED, message, to="orders")
        done = await sql.fetchrow("SELECT * FROM outbox_ledger")
        assert done is not None
        assert (done["id"], done["created_at"], done["status"]) == (begun["id"], begun["created_at"], "SUCCESS")
        assert done["created_at"] < done["updated_at"] == done["processed_at"]


async def test_an_entry_is_unique_and_has_a_known_state(sql: Sql) -> None:
    entry = "INSERT INTO outbox_ledger (event_id, destination, status) VALUES ($1, $2, $3)"
    for status in ("PROCESSING", "SUCCESS", "FAILED"):
        await sql.execute(entry, "evt-001", status, status)
    for refused in (
        ("evt-001", "FAILED", "SUCCESS"),
        ("evt-002", "", "DONE"),
        ("evt-002", "", None),
        (None, "", "FAILED"),
    ):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await sql.execute(entry, *refused)


async def test_a_locked_ledger_loses_nothing(sql: Sql, postgres_url: str) -> None:
    await record(sql, 20)
    async with aclosing(PostgresStore(postgres_url, ledger=True)) as store:
        shop = Shop(store)
        lock = sql.transaction()
        await lock.start()
        await sql.execute("LOCK TABLE outbox_ledger IN ACCESS EXCLUSIVE MODE")
        async with shop.relay:
            await eventually(shop.failed, within=90)
            assert shop.handled == []
            await lock.rollback()
            await eventually(lambda: shop.has(20), within=90)
    assert shop.handled == [f"{n:03}" for n in range(20)]
    assert await sql.fetchval("SELECT count(*) FROM outbox_ledger WHERE status = 'SUCCESS'") == 20


NOTE = "INSERT INTO outbox_ledger (event_id, destination, status) VALUES ($1, 'shop', 'PROCESSING')"
WAITS = (
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'pillarbox' AND wait_event_type = 'Lock'"
    " AND datname = current_database() AND query LIKE '%outbox_ledger%'"
)


async def test_a_deadlock_in_the_ledger_is_retried(sql: Sql, postgres_url: str) -> None:
    await record(sql, 20)
    other_session = await asyncpg.connect(postgres_url)
    # The session that checks for a deadlock first is cancelled: not this one.
    await other_session.execute("SET deadlock_timeout = '1min'")
    async with aclosing(PostgresStore(postgres_url, ledger=True)) as store:
        owner = await Owner.of(store)
        batch = [Resolved(message, "shop") for message in await owner.ready()]
        assert store.ledger is not None
        locking = other_session.transaction()
        await locking.start()
        await other_session.execute(NOTE, "019")
        begun = asyncio.create_task(store.ledger.begin(batch))
        await eventually(lambda: sql.fetchval(WAITS), within=90)
        closing = asyncio.create_task(other_session.execute(NOTE, "000"))
        with pytest.raises(StoreUnavailableError, match="deadlock detected"):
            await begun
        await closing
        await locking.rollback()
        assert await sql.fetchval("SELECT count(*) FROM outbox_message") == 20
        assert await store.ledger.begin(batch) == [PriorSend.NOT_SENT] * 20
    await other_session.close()


async def test_a_lost_connection_to_the_ledger_loses_nothing(sql: Sql, postgres_url: str) -> None:
    await record(sql, 200)
    async with aclosing(PostgresStore(postgres_url, ledger=True)) as store:
        shop = Shop(store)
        async with shop.relay:
            for number in (20, 60, 120):
                await eventually(lambda reached=number: shop.has(reached), within=90)  # type: ignore[misc]
                # Terminate every connection that runs a statement of the ledger or a settlement.
                await sql.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid() AND query LIKE '%outbox_ledger%'"
                )
            await eventually(lambda: shop.has(200), within=90)
    assert list(dict.fromkeys(shop.handled)) == [f"{n:03}" for n in range(200)]
    assert await sql.fetchval("SELECT count(*) FROM outbox_ledger WHERE status = 'SUCCESS'") == 200
