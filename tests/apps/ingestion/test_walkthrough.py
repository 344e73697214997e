"""The walk-through of the guide, step by step, with its queries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.apps.ingestion.running import BOUND, Service
from tests.integration.consume.broker import ready
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

RECENT = """
SELECT id, event_id, event_type, aggregate_id, status, retry_count, created_at, sent_at
FROM outbox_events
ORDER BY created_at DESC
LIMIT 5;
"""
PENDING = """
SELECT event_id, status, retry_count, next_retry_at, last_error
FROM outbox_events
WHERE status = 'PENDING';
"""
REPUBLISH = """
UPDATE outbox_events
SET status = 'PENDING', retry_count = 0, last_error = NULL, next_retry_at = NULL
WHERE id = '{}';
"""

Sql = psycopg.Connection[dict[str, Any]]


@pytest.fixture
def sql(database: str) -> Iterator[Sql]:
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
        yield connection


def rows(sql: Sql, query: str) -> list[dict[str, Any]]:
    return sql.execute(query.encode()).fetchall()


def newest(sql: Sql) -> dict[str, Any]:
    return rows(sql, RECENT)[0]


def wait_until_sent(sql: Sql) -> dict[str, Any]:
    wait_until(lambda: newest(sql)["status"] == "SENT", bound=90, what="the newest event is SENT")
    return newest(sql)


def has_failed(sql: Sql) -> bool:
    return any(row["retry_count"] >= 1 and row["next_retry_at"] is not None for row in rows(sql, PENDING))


def test_the_guide_step_by_step(database: str, private_rabbitmq: RabbitMQServer, sql: Sql, tmp_path: Path) -> None:
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": private_rabbitmq.url()}

    # With the publisher disabled the event stays pending.
    with Service(folder=tmp_path, **variables, INGESTION_RELAY="off") as service:
        first = service.upload().json()
        event = newest(sql)
        assert (event["event_type"], event["aggregate_id"]) == ("DocumentUploaded", first["id"])
        assert (event["status"], event["retry_count"], event["sent_at"]) == ("PENDING", 0, None)

    # Enabled, it declares the topology and publishes the pending event.
    with Service(folder=tmp_path, **variables) as service:
        event = wait_until_sent(sql)
        assert (event["retry_count"], event["sent_at"] >= event["created_at"]) == (0, True)
        assert ready(private_rabbitmq.url(), "document.uploaded.q") == 1

        # With the broker stopped, an upload succeeds and publishing its event fails.
        private_rabbitmq.stop()
        second = service.upload("test-retry.pdf")
        assert second.status_code == 201
        wait_until(lambda: has_failed(sql), bound=BOUND, what="an attempt has failed, and the next one is scheduled")
        [tried] = rows(sql, PENDING)
        assert tried["last_error"]
        which = f"eventId={tried['event_id']}, aggregateId={second.json()['id']}"
        for line in (f"Failed to publish event: {which}", f"Will retry event: {which}"):
            wait_until(lambda line=line: service.has_logged(line), bound=BOUND, what=line)  # type: ignore[misc]

        # With the broker available again, the event is published without intervention.
        private_rabbitmq.start()
        event = wait_until_sent(sql)
        assert (event["event_id"], event["sent_at"] is not None) == (tried["event_id"], True)
        assert ready(private_rabbitmq.url(), "document.uploaded.q") == 2
        assert rows(sql, PENDING) == []
    assert "guest:guest" not in service.log_text()


def test_a_failed_event_is_republished_by_the_update_of_the_guide(
    database: str, broker: str, sql: Sql, tmp_path: Path
) -> None:
    with Service(folder=tmp_path, INGESTION_STORE=database, INGESTION_TRANSPORT=broker) as service:
        service.upload()
        wait_until_sent(sql)
        # A permanent error: CC is a reserved header.
        sql.execute(
            "INSERT INTO outbox_message (event_type, payload, headers)"
            " VALUES ('DocumentUploaded', '{}', '{\"CC\": \"x\"}')"
        )
        failed = "SELECT id, event_id, last_error FROM outbox_events WHERE status = 'FAILED'"
        wait_until(lambda: rows(sql, failed) != [], bound=BOUND, what="the event is FAILED")
        [event] = rows(sql, failed)
        assert event["last_error"]
        dead_lettered = f"Dead-lettered event: eventId={event['event_id']}"
        wait_until(lambda: service.has_logged(dead_lettered), bound=BOUND, what="the event is dead-lettered")
        sql.execute(REPUBLISH.format(event["id"]).encode())
        wait_until(lambda: service.log_text().count(dead_lettered) == 2, bound=BOUND, what="the event was sent again")
