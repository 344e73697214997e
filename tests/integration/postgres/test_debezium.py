"""The SQL and the connector of docs/how-to/debezium.md: every committed event once, none of a rollback, in order."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from pillarbox import Event, Outbox
from pillarbox.core.source import Incoming
from pillarbox.inbox.consumed_event import read
from pillarbox.stores.postgres import PostgresStore
from tests.databases import cloned, make_template
from tests.docs.pages import ROOT, blocks
from tests.integration.postgres.decoding import Insert, decoded, routed
from tests.servers.availability import available
from tests.servers.postgres import PostgresServer
from tests.servers.waiting import wait_until

PAGE = ROOT / "docs/how-to/debezium.md"
PREPARE, CREATE_SLOT, ROLES, DELETE = blocks(PAGE, "sql")
[CONNECTOR] = [json.loads(block)["config"] for block in blocks(PAGE, "json")]
SLOT, PUBLICATION = CONNECTOR["slot.name"], CONNECTOR["publication.name"]
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
KEYS = [f"ORDER:{number}" for number in range(5)]
WRITERS = 4
TRANSACTIONS = 40


def logical() -> PostgresServer:
    return PostgresServer(durable=False, settings={"wal_level": "logical"})


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with available(logical) as server:
        yield server


@pytest.fixture(scope="module")
def template(server: PostgresServer) -> str:
    return asyncio.run(make_template(server))


@pytest.fixture
def url(server: PostgresServer, template: str) -> Iterator[str]:
    """A database with the tables of an outbox, prepared as the page says."""
    with cloned(server, template) as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute(PREPARE.encode())
        owner.execute(CREATE_SLOT.encode())
        yield url
        owner.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", [SLOT]
        )


@pytest.fixture
def owner(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def sent(connection: psycopg.Connection[Any]) -> list[Insert]:
    return decoded(connection, SLOT, PUBLICATION)


def sent_ids(connection: psycopg.Connection[Any]) -> list[str]:
    return [one.row["event_id"] for one in sent(connection)]


class Writer:
    """Records events in transactions that commit, roll back, or roll back to a savepoint."""

    def __init__(self, url: str, number: int) -> None:
        self._url = url
        self._number = number
        self._random = random.Random(number)
        self._recorded = 0
        self.committed: list[list[str]] = []
        """The event ids of each committed transaction."""
        self.rolled_back: list[str] = []

    def run(self) -> None:
        outbox = Outbox(strict_order=True)
        with psycopg.connect(self._url) as connection:
            for _ in range(TRANSACTIONS):
                self._write(connection, outbox)

    def _write(self, connection: psycopg.Connection[Any], outbox: Outbox) -> None:
        key, ids = self._random.choice(KEYS), list[str]()
        with suppress(ZeroDivisionError), connection.transaction():
            for _ in range(self._random.randint(1, 3)):
                event = self._event(key)
                with suppress(LookupError), connection.transaction():  # a savepoint
                    outbox.record(connection, event)
                    if self._random.random() < 0.3:
                        self.rolled_back.append(event.event_id)
                        raise LookupError
                    ids.append(event.event_id)
            if self._random.random() < 0.3:
                self.rolled_back += ids
                raise ZeroDivisionError
        if set(ids).isdisjoint(self.rolled_back):
            self.committed.append(ids)

    def _event(self, key: str) -> Event:
        self._recorded += 1
        kind, identity = key.split(":")
        event_id = f"{self._number}-{self._recorded}"
        return Event("order.changed", {}, event_id=event_id, aggregate_type=kind, aggregate_id=identity)


def test_every_committed_event_is_sent_once_and_none_of_a_rollback(url: str, owner: psycopg.Connection[Any]) -> None:
    writers = [Writer(url, number) for number in range(WRITERS)]
    threads = [threading.Thread(target=writer.run) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    inserts = sent(owner)
    committed = [one for writer in writers for ids in writer.committed for one in ids]
    assert len(committed) > WRITERS * TRANSACTIONS // 2
    assert sum(len(writer.rolled_back) for writer in writers) > WRITERS * TRANSACTIONS // 4
    assert sorted(one.row["event_id"] for one in inserts) == sorted(committed)

    # Per key in the order of recording, which `strict_order` makes that of the commits.
    sequences: dict[str, list[int]] = defaultdict(list)
    for one in inserts:
        record = routed(one.row, CONNECTOR)
        assert record.key in KEYS
        sequences[record.key or ""].append(one.row["id"])
    assert {key: sorted(found) for key, found in sequences.items()} == sequences
    assert set(sequences) == set(KEYS)

    # The events of a transaction stay together, in their order.
    by_transaction: dict[int, list[str]] = defaultdict(list)
    for one in inserts:
        by_transaction[one.xid].append(one.row["event_id"])
    assert sorted(by_transaction.values()) == sorted(ids for writer in writers for ids in writer.committed if ids)
    assert [one.xid for one in inserts] == [xid for xid, ids in by_transaction.items() for _ in ids]


def test_a_transaction_is_sent_when_it_commits_in_the_order_of_commits(
    url: str, owner: psycopg.Connection[Any]
) -> None:
    outbox = Outbox(strict_order=False)
    with psycopg.connect(url) as first, psycopg.connect(url) as second:
        outbox.record(first, Event("order.changed", {}, event_id="first", key="k"))
        outbox.record(second, Event("order.changed", {}, event_id="second", key="k"))
        assert sent_ids(owner) == []
        second.commit()
        assert sent_ids(owner) == ["second"]
        first.commit()
        assert sent_ids(owner) == ["first"]


def test_strict_order_makes_the_second_writer_of_a_key_wait(url: str, owner: psycopg.Connection[Any]) -> None:
    outbox = Outbox(strict_order=True)

    def write_second() -> None:
        with psycopg.connect(url) as second:
            outbox.record(second, Event("order.changed", {}, event_id="second", key="k"))

    def second_waits() -> bool:
        waiting = owner.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchone()
        return waiting == (1,)

    thread = threading.Thread(target=write_second)
    with psycopg.connect(url) as first:
        outbox.record(first, Event("order.changed", {}, event_id="first", key="k"))
        thread.start()
        wait_until(second_waits, bound=30, what="the second writer waits")
    thread.join()
    assert sent_ids(owner) == ["first", "second"]


def test_a_message_has_what_a_relay_would_send(owner: psycopg.Connection[Any]) -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    event = Event(
        "order.placed",
        {"total": "12,50 €"},
        event_id="e1",
        aggregate_type="ORDER",
        aggregate_id="42",
        headers={"tenant": "acme", "tracestate": "shop=7"},
        schema_version=3,
        correlation_id="visit",
        causation_id="e0",
        trace_id=TRACE,
        occurred_at=when,
    )
    with owner.transaction():
        Outbox().record(owner, event)
    [insert] = sent(owner)
    assert insert.table == CONNECTOR["table.include.list"]
    record = routed(insert.row, CONNECTOR)
    assert (record.topic, record.key, record.value) == ("shop.events", "ORDER:42", '{"total":"12,50 €"}'.encode())
    headers = {name: value for name, value in record.headers.items() if value is not None}
    assert json.loads(headers.pop("headers")) == {"tenant": "acme", "tracestate": "shop=7"}
    assert headers == {
        "id": "e1",
        "eventId": "e1",
        "eventType": "order.placed",
        "content-type": "application/json",
        "aggregateType": "ORDER",
        "aggregateId": "42",
        "occurredAt": "2026-01-02T03:04:05.678901Z",
        "schemaVersion": "3",
        "correlationId": "visit",
        "causationId": "e0",
        "traceparent": TRACE,
    }
    consumed = read(
        Incoming(
            event_id=headers["eventId"],
            event_type=headers["eventType"],
            body=record.value,
            content_type=headers["content-type"],
            correlation_id=headers["correlationId"],
            headers=headers,
        )
    )
    assert (consumed.event_id, consumed.payload, consumed.occurred_at) == ("e1", event.payload, when)
    assert (consumed.aggregate_type, consumed.aggregate_id, consumed.schema_version) == ("ORDER", "42", 3)


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ({}, None),
        ({"aggregate_id": "42"}, "42"),
        ({"aggregate_type": "ORDER"}, None),
        ({"aggregate_type": "ORDER", "aggregate_id": "42"}, "ORDER:42"),
        ({"aggregate_type": "ORDER", "aggregate_id": "42", "ordering_key": "tenant-7"}, "tenant-7"),
    ],
)
def test_the_key_is_that_of_a_relay(owner: psycopg.Connection[Any], columns: dict[str, str], key: str | None) -> None:
    values = {"event_type": "order.placed", "payload": b"\x00\xff", **columns}
    names, holes = ", ".join(values), ", ".join(["%s"] * len(values))
    inserted = owner.execute(
        f"INSERT INTO outbox_message ({names}) VALUES ({holes}) RETURNING key".encode(), list(values.values())
    )
    assert inserted.fetchone() == (key,)
    [insert] = sent(owner)
    assert "key" not in insert.row  # generated columns are not published: the trigger is needed
    record = routed(insert.row, CONNECTOR)
    assert (record.key, record.value) == (key, b"\x00\xff")


def test_what_relays_and_the_job_write_is_not_sent(owner: psycopg.Connection[Any]) -> None:
    with owner.transaction():
        Outbox().record(owner, Event("order.placed", {}, event_id="old"), Event("order.placed", {}, event_id="new"))
    assert sent_ids(owner) == ["old", "new"]
    owner.execute("UPDATE outbox_message SET attempts = 1, held = 'parked'")
    owner.execute("UPDATE outbox_message SET recorded_at = now() - interval '25 hours' WHERE event_id = 'old'")
    owner.execute(DELETE.encode())
    assert owner.execute("SELECT event_id FROM outbox_message").fetchall() == [("new",)]
    assert sent(owner) == []


def test_a_row_that_was_deleted_before_it_was_read_is_sent(owner: psycopg.Connection[Any]) -> None:
    with owner.transaction():
        Outbox().record(owner, Event("order.placed", {}, event_id="e1"))
    owner.execute("UPDATE outbox_message SET recorded_at = now() - interval '25 hours'")
    assert owner.execute(DELETE.encode()).rowcount == 1
    assert sent_ids(owner) == ["e1"]


def test_rows_stay_if_the_slot_is_gone(owner: psycopg.Connection[Any]) -> None:
    with owner.transaction():
        Outbox().record(owner, Event("order.placed", {}, event_id="e1"))
    owner.execute("UPDATE outbox_message SET recorded_at = now() - interval '25 hours'")
    owner.execute("SELECT pg_drop_replication_slot(%s)", [SLOT])
    assert owner.execute(DELETE.encode()).rowcount == 0


@pytest.fixture
def roles(owner: psycopg.Connection[Any]) -> Iterator[None]:
    owner.execute(ROLES.encode())
    yield
    owner.execute("DROP OWNED BY debezium, outbox_cleaner; DROP ROLE debezium; DROP ROLE outbox_cleaner")


@contextmanager
def logged_in(url: str, role: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url.replace("postgres@", f"{role}@"), autocommit=True) as connection:
        yield connection


@pytest.mark.usefixtures("roles")
def test_each_role_can_do_its_part_only(url: str, owner: psycopg.Connection[Any]) -> None:
    with owner.transaction():
        Outbox().record(owner, Event("order.placed", {}, event_id="e1"))
    owner.execute("UPDATE outbox_message SET recorded_at = now() - interval '25 hours'")
    with logged_in(url, CONNECTOR["database.user"]) as connector, logged_in(url, "outbox_cleaner") as cleaner:
        assert connector.execute("SELECT event_id FROM outbox_message").fetchall() == [("e1",)]
        assert sent_ids(connector) == ["e1"]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connector.execute(DELETE.encode())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sent(cleaner)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            cleaner.execute("INSERT INTO outbox_message (event_type, payload) VALUES ('t', '')")
        assert cleaner.execute(DELETE.encode()).rowcount == 1


def test_a_connector_continues_where_it_stopped_after_a_crash_of_the_server() -> None:
    with available(logical) as server:
        with psycopg.connect(server.url(), autocommit=True) as owner:
            owner.execute(PostgresStore(server.url()).schema.sql().encode())
            owner.execute(PREPARE.encode())
            owner.execute(CREATE_SLOT.encode())
            with owner.transaction():
                Outbox().record(owner, Event("order.placed", {}, event_id="read"))
            assert sent_ids(owner) == ["read"]
            with owner.transaction():
                Outbox().record(owner, Event("order.placed", {}, event_id="unread"))
        open_transaction = psycopg.connect(server.url())
        Outbox().record(open_transaction, Event("order.placed", {}, event_id="uncommitted"))
        server.kill()
        with suppress(psycopg.OperationalError):
            open_transaction.close()
        server.start()
        with psycopg.connect(server.url(), autocommit=True) as owner:
            with owner.transaction():
                Outbox().record(owner, Event("order.placed", {}, event_id="later"))
            # At least once: a slot may repeat what was read since its last checkpoint.
            assert [one for one in sent_ids(owner) if one != "read"] == ["unread", "later"]
