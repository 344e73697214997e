"""Other clients use every connection of the database, and the relay has lost its own: it waits, and continues."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pymysql
import pytest

from pillarbox import Event
from tests.databases import cloned, make_mariadb_tables, make_template, mariadb_database
from tests.extremes.conftest import MakeScene
from tests.extremes.databases import connected
from tests.extremes.receiving import from_queue
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.extremes.scene import Scene
from tests.servers.availability import available
from tests.servers.mariadb import MariaDBServer
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

EVENTS = 200
SLOTS = "20"
MOST_SLOTS = 100
"""More than a server has; a loop that opens so many connections does not end by itself."""


class Slots(ABC):
    """The connections of one server; all are open, and held, after `fill`."""

    said: str
    """What the server replies when there are no more."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.held: list[Any] = []
        self._open = ExitStack()

    def fill(self) -> None:
        """End the sessions of the relay, and hold every connection."""
        self._hold()
        wait_until(self._is_full, bound=120, what="no connection is left to the relay")

    def _is_full(self) -> bool:
        self._end_sessions()
        while len(self.held) < MOST_SLOTS:
            try:
                self._hold()
            except (psycopg.OperationalError, pymysql.err.OperationalError) as error:
                if self.said not in str(error):
                    raise
                return self._sessions() == []
        raise AssertionError(f"the server accepts {MOST_SLOTS} connections")

    def _hold(self) -> None:
        self.held.append(self._open.enter_context(connected(self.url)))

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement on a connection that is held."""
        with self.held[0].cursor() as cursor:
            cursor.execute(statement)
            found = list(cursor.fetchall())
        self.held[0].commit()
        return found

    def release(self) -> None:
        self._open.close()

    @abstractmethod
    def _sessions(self) -> list[int]:
        """The numbers of the sessions of the relay."""

    @abstractmethod
    def _end_sessions(self) -> None: ...


class PostgresSlots(Slots):
    said = "too many clients already"

    def _sessions(self) -> list[int]:
        found = self.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'pillarbox'")
        return [pid for (pid,) in found]

    def _end_sessions(self) -> None:
        self.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pillarbox'")


class MariaDBSlots(Slots):
    said = "Too many connections"

    def _sessions(self) -> list[int]:
        held = {connection.thread_id() for connection in self.held}
        found = self.query("SELECT id, db FROM information_schema.processlist WHERE user = 'root'")
        return [number for number, database in found if number not in held and database is not None]

    def _end_sessions(self) -> None:
        for number in self._sessions():
            try:
                self.query(f"KILL CONNECTION {number}")
            except pymysql.err.OperationalError as error:
                if "Unknown thread id" not in str(error):  # it has ended already
                    raise


@pytest.fixture
def postgres_slots() -> Iterator[PostgresSlots]:
    with (
        available(lambda: PostgresServer(durable=False, settings={"max_connections": SLOTS})) as server,
        cloned(server, asyncio.run(make_template(server))) as url,
    ):
        yield PostgresSlots(url)


@pytest.fixture
def mariadb_slots() -> Iterator[MariaDBSlots]:
    with (
        available(lambda: MariaDBServer(durable=False, settings={"max-connections": SLOTS})) as server,
        mariadb_database(server) as url,
    ):
        asyncio.run(make_mariadb_tables(url))
        yield MariaDBSlots(url)


def record(scene: Scene, connection: Any) -> None:
    """Commit events on a connection that is open already."""
    keys = [f"key-{number}" for number in range(scene.keys)]
    ids = scene.outbox.record(connection, *(Event(scene.event_type, {}, key=key) for key in keys))
    connection.commit()
    scene.ledger.commit(zip(keys, ids, strict=True))


@pytest.mark.parametrize("database", ["postgres", "mariadb"])
def test_a_relay_waits_for_a_free_connection(
    request: pytest.FixtureRequest, make_scene: MakeScene, database: str, rabbitmq_server: RabbitMQServer
) -> None:
    slots: Slots = request.getfixturevalue(f"{database}_slots")
    scene = make_scene(store=slots.url, transport=rabbitmq_server.url())
    relay = scene.start()
    scene.write(EVENTS)
    scene.wait_drained()
    slots.fill()
    record(scene, slots.held[0])
    scene.wait_until(lambda: relay.said(slots.said), what="the relay reports that there are too many connections")
    assert slots.query("SELECT count(*) FROM outbox_message") == [(scene.keys,)]
    slots.release()
    scene.write(EVENTS)
    scene.wait_drained()
    assert relay.running
    scene.stop()
    assert scene.attempts() == 0
    scene.assert_sound(from_queue(rabbitmq_server.url(), scene.event_type), duplicates=MAX_IN_FLIGHT)
