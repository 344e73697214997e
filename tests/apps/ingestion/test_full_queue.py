"""A full queue rejects messages; their events are deferred in the outbox, and no attempt is counted."""

from __future__ import annotations

from pathlib import Path

import psycopg

from apps.ingestion.topology import MAX_MESSAGES, UPLOADED_QUEUE
from tests.apps.ingestion.running import BOUND, Service
from tests.integration.consume.broker import ready
from tests.integration.rabbitmq.consumer import channel
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

WAITING = "SELECT event_id, attempts, deferrals, last_error FROM outbox_message"
FULL = 20
"""Set by a policy, which takes precedence if smaller; filling 10,000 messages would take too long."""


def waiting(database: str) -> list[tuple[str, int, int, str | None]]:
    with psycopg.connect(database) as connection:
        return connection.execute(WAITING).fetchall()


def test_an_event_for_a_full_queue_is_deferred_without_counting_an_attempt(
    database: str, broker: str, rabbitmq_server: RabbitMQServer, tmp_path: Path
) -> None:
    vhost = broker.rpartition("/")[2]
    rabbitmq_server.ctl("set_policy", "-p", vhost, "small", ".*", f'{{"max-length": {FULL}}}', "--apply-to", "queues")
    with Service(folder=tmp_path, INGESTION_STORE=database, INGESTION_TRANSPORT=broker) as service:
        service.upload()
        wait_until(lambda: service.has_logged("Successfully published"), bound=BOUND, what="the queue exists")
        declared = rabbitmq_server.ctl("list_queues", "-p", vhost, "name", "arguments")
        assert f'{{"x-max-length",{MAX_MESSAGES}}}' in declared.replace(" ", ""), declared
        assert MAX_MESSAGES == 10_000
        uploads = 1

        def refused() -> bool:
            """A quorum queue may accept some more messages before it rejects one."""
            nonlocal uploads
            if not waiting(database):
                uploads += service.upload().status_code == 201
            return any(deferrals for _, _, deferrals, _ in waiting(database))

        wait_until(refused, bound=BOUND, what="an event is rejected")
        [(event_id, attempts, deferrals, error)] = waiting(database)
        assert (attempts, deferrals > 0) == (0, True)
        assert "the broker nacked event" in str(error)
        assert uploads > FULL
        assert ready(broker, UPLOADED_QUEUE.name) == uploads - 1
        with channel(broker) as consumer:
            consumer.queue_purge(UPLOADED_QUEUE.name)
        wait_until(lambda: waiting(database) == [], bound=BOUND, what="the event is sent")
    with psycopg.connect(database) as connection:
        shown = "SELECT status, retry_count, attempts FROM outbox_event WHERE event_id = %s"
        [(status, retries, attempts)] = connection.execute(shown, [event_id]).fetchall()
        assert (status, retries >= deferrals, attempts) == ("PUBLISHED", True, 0)
