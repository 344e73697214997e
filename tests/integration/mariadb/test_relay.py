"""A relay on MariaDB: events arrive once and in order, also when the server is killed in the middle."""

import asyncio
from collections import defaultdict
from contextlib import aclosing
from functools import partial

import pymysql

from pillarbox import Event, Handlers, Outbox, Relay, RelayConfig
from pillarbox.stores.mariadb import MariaDBStore
from pillarbox.testing.waiting import eventually
from tests.databases import make_mariadb_tables
from tests.integration.mariadb.session import Session
from tests.integration.record.mariadb_ways import pymysql_connection
from tests.servers.availability import available
from tests.servers.mariadb import MariaDBServer

CONFIG = RelayConfig(heartbeat_interval="200ms", lease="12s")
KEYS = 5


class Received:
    """What a handler received, by key."""

    def __init__(self) -> None:
        self.handlers = Handlers()
        self.numbers: defaultdict[str, list[int]] = defaultdict(list)
        self.handlers.on("*", name="all")(self._handle)

    async def _handle(self, event: object, context: object) -> None:
        payload = event.payload  # type: ignore[attr-defined]
        self.numbers[payload["key"]].append(payload["n"])

    def firsts(self) -> dict[str, list[int]]:
        return {key: list(dict.fromkeys(numbers)) for key, numbers in self.numbers.items()}

    def has_more_than(self, count: int) -> bool:
        return self.count() > count

    def count(self) -> int:
        return sum(len(numbers) for numbers in self.firsts().values())


def produce(url: str, first: int, count: int) -> int:
    """Record events in transactions of their own until the server is gone; returns how many were committed."""
    done = 0
    try:
        with pymysql_connection(url) as connection:
            for n in range(first, first + count):
                key = f"k{n % KEYS}"
                Outbox().record(connection, Event("counted", {"key": key, "n": n}, key=key, event_id=f"e{n}"))
                connection.commit()
                done += 1
    except pymysql.MySQLError:
        pass
    return done


async def test_events_of_many_keys_are_handled_in_order(mariadb_url: str) -> None:
    received = Received()
    async with aclosing(MariaDBStore(mariadb_url)) as store:
        await asyncio.to_thread(produce, mariadb_url, 0, 200)
        async with Relay(store=store, transports={"handlers": received.handlers}, config=CONFIG):
            await eventually(lambda: received.count() == 200, within=60)
            # An event that is recorded while the relay is idle wakes it.
            await asyncio.to_thread(produce, mariadb_url, 200, 10)
            await eventually(lambda: received.count() == 210, within=60)
    assert received.firsts() == {f"k{key}": list(range(key, 210, KEYS)) for key in range(KEYS)}
    async with Session(mariadb_url) as sql:
        assert await sql.value("SELECT count(*) FROM outbox_history") == 210
        assert await sql.value("SELECT count(*) FROM outbox_message") == 0


async def test_no_committed_event_is_lost_when_the_server_is_killed() -> None:
    received = Received()
    with available(MariaDBServer) as server:
        server.create_database("shop")
        url = server.url("shop")
        await make_mariadb_tables(url)
        committed: list[int] = []
        async with (
            aclosing(MariaDBStore(url)) as store,
            Relay(store=store, transports={"handlers": received.handlers}, config=CONFIG),
        ):
            for round_ in range(2):
                first = round_ * 100_000
                producing = asyncio.create_task(asyncio.to_thread(produce, url, first, 100_000))
                await eventually(partial(received.has_more_than, len(committed) + 50), within=60)
                await asyncio.to_thread(server.kill)
                done = await producing
                committed += range(first, first + done)
                await asyncio.to_thread(server.start)
            await eventually(lambda: received.count() >= len(committed), within=60)
            async with Session(url) as sql:

                async def empty() -> bool:
                    return bool(await sql.value("SELECT count(*) = 0 FROM outbox_message"))

                await eventually(empty, within=60)
        firsts = received.firsts()
        # The last commit before each kill may have succeeded without an answer.
        assert set(committed) <= {n for numbers in firsts.values() for n in numbers}
        assert all(numbers == sorted(numbers) for numbers in firsts.values())
