"""A full disk under the database: recording fails with a clear error, the relay waits, and nothing is lost."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import psycopg
import pymysql

from tests.databases import cloned, make_mariadb_tables, make_template, mariadb_database
from tests.extremes.conftest import MakeScene
from tests.extremes.disks import MEGABYTE, SmallDisk
from tests.extremes.receiving import from_queue
from tests.extremes.relays import MAX_IN_FLIGHT
from tests.extremes.scene import Scene
from tests.servers.availability import available
from tests.servers.mariadb import MariaDBServer
from tests.servers.ports import is_open
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

EVENTS = 300
LARGE = 50_000
FAILED = "store failed"
"""What a relay logs when a statement failed."""
REFUSED = (psycopg.Error, pymysql.MySQLError, sqlite3.Error)


def write_until(scene: Scene, is_enough: Callable[[], bool]) -> Exception:
    """Write events until one is refused and a condition holds; return the first error of the driver."""
    refused: list[Exception] = []

    def is_over() -> bool:
        # A small one may still fit where a large one does not; then the relay has something to settle.
        for payload in (None, {"filler": random.randbytes(LARGE).hex()}):
            try:
                scene.write(5, payload)
            except REFUSED as error:
                refused.append(error)
        return bool(refused) and is_enough()

    scene.wait_until(is_over, what="the disk is full")
    return refused[0]


def fill_and_free(
    scene: Scene, disk: SmallDisk, broker: RabbitMQServer, restart: Callable[[], None] | None = None
) -> Exception:
    """Fill the disk while a relay works, free it once writer and relay have failed, and check the result.

    restart: starts the server again, which ended.
    """
    relay = scene.start()
    scene.write(EVENTS)
    scene.wait_drained()
    disk.fill()
    error = write_until(scene, lambda: relay.said(FAILED))
    disk.free()
    if restart is not None:
        restart()
    scene.write(EVENTS)
    scene.wait_drained()
    assert relay.running
    scene.stop()
    assert scene.attempts() == 0
    scene.assert_sound(from_queue(broker.url(), scene.event_type), duplicates=MAX_IN_FLIGHT)
    return error


@contextmanager
def small(size: int) -> Iterator[SmallDisk]:
    with closing(available(lambda: SmallDisk(size))) as disk:
        yield disk


def test_a_full_tablespace_of_postgresql(
    make_scene: MakeScene, postgres_server: PostgresServer, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    database = postgres_url.rpartition("/")[2]
    with small(32 * MEGABYTE) as disk, psycopg.connect(postgres_server.url(), autocommit=True) as administrator:
        administrator.execute(f"CREATE TABLESPACE small LOCATION '{disk.folder}'".encode())
        administrator.execute(f"ALTER DATABASE {database} SET TABLESPACE small".encode())
        try:
            scene = make_scene(store=postgres_url, transport=rabbitmq_server.url())
            error = fill_and_free(scene, disk, rabbitmq_server)
        finally:
            administrator.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())
            administrator.execute(b"DROP TABLESPACE small")
    assert isinstance(error, psycopg.errors.DiskFull)
    assert "No space left on device" in str(error)


def restart_ended(server: PostgresServer | MariaDBServer) -> None:
    """Start a server again that ended because its disk was full."""
    wait_until(lambda: not is_open(server.port), bound=60, what="the server has ended")
    server.restart()


def test_a_postgresql_that_cannot_write_its_log(make_scene: MakeScene, rabbitmq_server: RabbitMQServer) -> None:
    """A log that cannot grow ends the server. The relay waits until the server runs again."""
    settings = {"max_wal_size": "32MB", "min_wal_size": "32MB", "restart_after_crash": "off"}
    with small(48 * MEGABYTE) as disk, available(lambda: PostgresServer(settings=settings)) as server:
        server.stop()
        disk.move(server.data / "pg_wal")
        server.start()
        with cloned(server, asyncio.run(make_template(server))) as url:
            scene = make_scene(store=url, transport=rabbitmq_server.url())
            error = fill_and_free(scene, disk, rabbitmq_server, partial(restart_ended, server))
    assert isinstance(error, psycopg.OperationalError)


def test_a_full_disk_under_mariadb(make_scene: MakeScene, rabbitmq_server: RabbitMQServer) -> None:
    """The server ends when its log cannot grow. The relay waits until the server runs again."""
    with small(256 * MEGABYTE) as disk, available(MariaDBServer) as server:
        server.stop()
        disk.move(server.data)
        server.start()
        with mariadb_database(server) as url:
            asyncio.run(make_mariadb_tables(url))
            scene = make_scene(store=url, transport=rabbitmq_server.url())
            error = fill_and_free(scene, disk, rabbitmq_server, partial(restart_ended, server))
    assert isinstance(error, pymysql.err.OperationalError)


def test_a_full_disk_under_sqlite(
    make_scene: MakeScene, sqlite_template: Path, rabbitmq_server: RabbitMQServer
) -> None:
    with small(16 * MEGABYTE) as disk:
        scene = make_scene(
            store=f"sqlite:///{shutil.copy(sqlite_template, disk.folder)}", transport=rabbitmq_server.url()
        )
        error = fill_and_free(scene, disk, rabbitmq_server)
        [relay] = scene.relays
        assert relay.said("free some disk space")
    assert isinstance(error, sqlite3.OperationalError)
    assert "disk is full" in str(error)
