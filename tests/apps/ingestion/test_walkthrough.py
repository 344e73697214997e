"""The walk-through of the guide, step by step, with the queries as they stand there."""

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


def was_tried(sql: Sql) -> bool:
    return any(row["retry_count"] >= 1 and row["next_retry_at"] is not None for row in rows(sql, PENDING))


def test_the_guide_step_by_step(database: str, mortal_rabbitmq: RabbitMQServer, sql: Sql, tmp_path: Path) -> None:
    variables = {"INGESTION_STORE": database, "INGESTION_TRANSPORT": mortal_rabbitmq.url()}

    # The publisher is disabled: the event is there, and stays.
    with Service(folder=tmp_path, **variables, INGESTION_RELAY="off") as service:
        first = service.upload().json()
        event = newest(sql)
        assert (event["event_type"], event["aggregate_id"]) == ("DocumentUploaded", first["id"])
        assert (event["status"], event["retry_count"], event["sent_at"]) == ("PENDING", 0, None)

    # Enabled, it publishes what has waited, to a topology that it declared itself.
    with Service(folder=tmp_path, **variables) as service:
        event = wait_until_sent(sql)
        assert (event["retry_count"], event["sent_at"] >= event["created_at"]) == (0, True)
        assert ready(mortal_rabbitmq.url(), "document.uploaded.q") == 1

        # The broker stops: the upload succeeds all the same, and its event is tried in vain.
        mortal_rabbitmq.stop()
        second = service.upload("test-retry.pdf")
        assert second.status_code == 201
        wait_until(lambda: was_tried(sql), bound=BOUND, what="a try has failed, and the next one is planned")
        [tried] = rows(sql, PENDING)
        assert tried["last_error"]
        told = f"eventId={tried['event_id']}, aggregateId={second.json()['id']}"
        for line in (f"Failed to publish event: {told}", f"Will retry event: {told}"):
            wait_until(lambda line=line: service.says(line), bound=BOUND, what=line)  # type: ignore[misc]

        # It comes back: nobody has to do anything.
        mortal_rabbitmq.start()
        event = wait_until_sent(sql)
        assert (event["event_id"], event["sent_at"] is not None) == (tried["event_id"], True)
        assert ready(mortal_rabbitmq.url(), "document.uploaded.q") == 2
        assert rows(sql, PENDING) == []
    assert "guest:guest" not in service.story()


def test_a_failed_event_is_republished_by_the_update_of_the_guide(
    database: str, broker: str, sql: Sql, tmp_path: Path
) -> None:
    with Service(folder=tmp_path, INGESTION_STORE=database, INGESTION_TRANSPORT=broker) as service:
        service.upload()
        wait_until_sent(sql)
        # What no try can make right: a name no property of a message can hold.
        sql.execute(
            "INSERT INTO outbox_message (event_type, payload, headers)"
            " VALUES ('DocumentUploaded', '{}', '{\"CC\": \"nobody\"}')"
        )
        failed = "SELECT id, event_id, last_error FROM outbox_events WHERE status = 'FAILED'"
        wait_until(lambda: rows(sql, failed) != [], bound=BOUND, what="the event is FAILED")
        [event] = rows(sql, failed)
        assert event["last_error"]
        deaths = f"Gave up on event: eventId={event['event_id']}"
        wait_until(lambda: service.says(deaths), bound=BOUND, what="it is given up")
        sql.execute(REPUBLISH.format(event["id"]).encode())
        wait_until(lambda: service.story().count(deaths) == 2, bound=BOUND, what="it was sent once more")
