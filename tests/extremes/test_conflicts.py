"""Other transactions deadlock with a relay, lock what it needs, or change what was read: the relay repeats its work."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pymysql
import pytest

from pillarbox import Event, Inbox, Outbox
from pillarbox.core.statistics import ConsumerStatistics
from tests.databases import make_mariadb_tables, mariadb_database
from tests.extremes.conftest import MakeScene
from tests.extremes.databases import connected, number, rows
from tests.extremes.receiving import from_queue
from tests.extremes.relays import BATCH_SIZE
from tests.extremes.scene import Scene
from tests.servers.availability import available
from tests.servers.mariadb import MariaDBServer
from tests.servers.rabbitmq import RabbitMQServer

EVENTS = 2 * BATCH_SIZE
MANY = 10 * BATCH_SIZE
LOCK_ATTEMPTS = 20
DEADLOCK = 1213
CHANGED = 1020
STATUS = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = '{}'"
WAITS = STATUS.format("INNODB_ROW_LOCK_CURRENT_WAITS")
DEADLOCKS = STATUS.format("INNODB_DEADLOCKS")
WORK = "INSERT INTO work SELECT seq FROM seq_1_to_{}"


def finish(scene: Scene, rabbitmq: RabbitMQServer) -> None:
    """Nothing is lost, sent twice or counted as an attempt."""
    scene.wait_drained()
    scene.stop()
    assert scene.attempts() == 0
    scene.assert_sound(from_queue(rabbitmq.url(), scene.event_type))


@pytest.mark.parametrize("victim", ["relay", "producer"])
def test_a_producer_that_deadlocks_with_a_settlement(
    make_scene: MakeScene, mariadb_url: str, rabbitmq_server: RabbitMQServer, victim: str
) -> None:
    """The server rolls back the transaction that has written less."""
    scene = make_scene(store=mariadb_url, transport=rabbitmq_server.url())
    rows(mariadb_url, "CREATE TABLE work (number BIGINT)")
    *_, last = scene.write(EVENTS)
    deadlocks = number(mariadb_url, DEADLOCKS)
    work = 10 * EVENTS if victim == "relay" else 1
    with connected(mariadb_url) as producer, closing(producer.cursor()) as cursor:
        cursor.execute(WORK.format(work))
        record_again(scene, producer, last)
        relay = scene.start()
        # The settlement of the last batch has locked its messages, and waits for one of them.
        scene.wait_until(lambda: number(mariadb_url, WAITS) > 0, what="a settlement waits for the producer")
        [locked, *_] = sorted(locked_messages(scene) - {last})
        if victim == "relay":
            record_again(scene, producer, locked)
            producer.commit()
        else:
            with pytest.raises(pymysql.err.OperationalError) as raised:
                record_again(scene, producer, locked)
            assert raised.value.args[0] == DEADLOCK
    assert number(mariadb_url, DEADLOCKS) > deadlocks
    scene.write(EVENTS)
    finish(scene, rabbitmq_server)
    assert relay.said("Deadlock found") or victim == "producer"
    assert number(mariadb_url, "SELECT count(*) FROM work") == (work if victim == "relay" else 0)


def record_again(scene: Scene, producer: Any, event_id: str) -> None:
    """Record an event that is pending: it is skipped, and its row is locked."""
    Outbox(duplicate="ignore").record(producer, Event(scene.event_type, {}, event_id=event_id))


def locked_messages(scene: Scene) -> set[str]:
    free = scene.query("SELECT event_id FROM outbox_message FORCE INDEX (PRIMARY) FOR UPDATE SKIP LOCKED")
    return scene.waiting() - {event_id for (event_id,) in free}


@contextmanager
def locked_lanes(url: str) -> Iterator[None]:
    """Every settlement waits."""
    with connected(url) as holder, closing(holder.cursor()) as cursor:
        cursor.execute("SELECT lane FROM outbox_lane FOR UPDATE")
        yield


@contextmanager
def locked_table(url: str) -> Iterator[None]:
    """Every fetch and every settlement waits."""
    with connected(url) as holder, closing(holder.cursor()) as cursor:
        cursor.execute("LOCK TABLE outbox_message WRITE")
        yield


@contextmanager
def locked_file(url: str) -> Iterator[None]:
    """Every write waits, those of heartbeats, too."""
    with connected(url) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield


LOCKS: dict[str, tuple[Callable[[str], Any], str]] = {
    "mariadb-rows": (locked_lanes, "Lock wait timeout exceeded"),
    "mariadb-table": (locked_table, "Lock wait timeout exceeded"),
    "sqlite-file": (locked_file, "was locked by another writer"),
}


@pytest.mark.parametrize("kind", LOCKS)
def test_a_relay_waits_for_a_lock_that_is_held_for_too_long(
    request: pytest.FixtureRequest, make_scene: MakeScene, rabbitmq_server: RabbitMQServer, kind: str
) -> None:
    lock, said = LOCKS[kind]
    store = str(request.getfixturevalue(f"{kind.partition('-')[0]}_url"))
    scene = make_scene(store=store, transport=rabbitmq_server.url())
    relay = scene.start()
    for _ in range(LOCK_ATTEMPTS):
        scene.write(MANY)
        with lock(store):
            before = relay.story().count(said)
            if kind == "mariadb-table" or scene.pending():
                scene.wait_until(lambda: relay.story().count(said) >= before + 2, what=f"the relay says twice: {said}")  # noqa: B023
                break
    else:
        raise AssertionError("the relay was always faster than the lock")
    assert relay.running
    scene.write(EVENTS)
    finish(scene, rabbitmq_server)


def admit(connection: Any) -> None:
    Inbox().admit(connection, "billing", "evt-001")


def count_results(connection: Any) -> None:
    Inbox().add_statistics(connection, ConsumerStatistics("billing", processed=1))


def record(connection: Any) -> None:
    Outbox(duplicate="ignore").record(connection, Event("order.placed", {}, event_id="evt-001"))


def is_stale(error: Exception) -> bool:
    if isinstance(error, sqlite3.OperationalError):
        return error.sqlite_errorcode == sqlite3.SQLITE_BUSY_SNAPSHOT
    return isinstance(error, pymysql.err.OperationalError) and error.args[0] == CHANGED


BEGIN = {"strict_mariadb": "START TRANSACTION WITH CONSISTENT SNAPSHOT", "sqlite": "BEGIN"}
"""MariaDB has its snapshot now; SQLite has it with the first read."""


@pytest.mark.parametrize("work", [record, admit, count_results])
@pytest.mark.parametrize("database", BEGIN)
def test_a_stale_snapshot_is_an_error_of_the_driver(
    request: pytest.FixtureRequest, database: str, work: Callable[[Any], None]
) -> None:
    url = str(request.getfixturevalue(f"{database}_url"))
    with connected(url) as stale, connected(url) as other, closing(stale.cursor()) as cursor:
        cursor.execute(BEGIN[database])
        cursor.execute("SELECT count(*) FROM outbox_message")
        assert cursor.fetchall()
        work(other)
        other.commit()
        with pytest.raises((sqlite3.OperationalError, pymysql.err.OperationalError), check=is_stale):
            work(stale)
        stale.rollback()
        work(stale)
        stale.commit()


REFUSE = """
CREATE TRIGGER refuse BEFORE INSERT ON outbox_history FOR EACH ROW
SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1020, MESSAGE_TEXT = 'Record has changed since last read'
"""


@pytest.fixture(scope="module")
def strict_mariadb() -> Iterator[MariaDBServer]:
    """A server that reports changes since the snapshot of a transaction; MariaDB 10.6.18 and 10.11.8 are the first."""
    with available(lambda: MariaDBServer(durable=False, settings={"loose-innodb-snapshot-isolation": "ON"})) as server:
        if not server.execute("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'"):
            pytest.skip("this MariaDB has no innodb_snapshot_isolation")
        yield server


@pytest.fixture
def strict_mariadb_url(strict_mariadb: MariaDBServer) -> Iterator[str]:
    with mariadb_database(strict_mariadb) as url:
        asyncio.run(make_mariadb_tables(url))
        yield url


def test_a_relay_repeats_settlements_that_the_server_reports_as_stale(
    make_scene: MakeScene, strict_mariadb_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    """A trigger raises the error: at the isolation level of relays the server raises none."""
    scene = make_scene(store=strict_mariadb_url, transport=rabbitmq_server.url())
    relay = scene.start()
    rows(strict_mariadb_url, REFUSE)
    scene.write(EVENTS)
    scene.wait_until(lambda: relay.story().count("Record has changed") >= 2, what="the relay reports the error twice")
    assert scene.delivered() == 0
    rows(strict_mariadb_url, "DROP TRIGGER refuse")
    with scene.under_load():
        scene.wait_delivered(MANY)
    finish(scene, rabbitmq_server)
