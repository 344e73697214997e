"""From the upload to ENRICHED on MariaDB and RabbitMQ: service, relay and both consumers as processes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sqlalchemy import text

from apps.ingestion.database import open_engine
from tests.apps.ingestion.running import BOUND, Consuming, Service
from tests.integration.rabbitmq.consumer import channel, publish_confirmed, take_all
from tests.servers.waiting import wait_until


def event_types(store: str, document_id: str) -> list[str]:
    """The types of the events of a document, in order."""
    engine = open_engine(store)
    with engine.begin() as connection:
        asked = text("SELECT event_type FROM outbox_event WHERE aggregate_id = :document ORDER BY id")
        found = list(connection.scalars(asked, {"document": document_id}))
    engine.dispose()
    return found


def test_repeated_uploads_and_duplicate_messages_have_one_effect(
    mariadb_database: str, broker: str, tmp_path: Path
) -> None:
    variables = {"INGESTION_STORE": mariadb_database, "INGESTION_TRANSPORT": broker}
    with Service(folder=tmp_path, **variables) as service:
        with ThreadPoolExecutor(8) as pool:
            responses = list(pool.map(lambda _: service.upload(**{"Idempotency-Key": "key-1"}), range(16)))
        assert {response.status_code for response in responses} <= {200, 201}
        [document_id] = {response.json()["id"] for response in responses}
        wait_until(lambda: service.has_logged("Successfully published event"), bound=BOUND, what="it is published")
        [message] = take_all(broker, "document.uploaded.q")
        with channel(broker) as producer:
            producer.confirm_delivery()
            for _ in range(2):
                publish_confirmed(producer, "doc.events", "document.uploaded", message.body, message.properties)
        with (
            Consuming("validate", tmp_path, variables) as validating,
            Consuming("enrich", tmp_path, variables) as enriching,
        ):
            wait_until(
                lambda: validating.has_logged("skipped a duplicate"), bound=BOUND, what="the duplicate is skipped"
            )
            service.wait_for(document_id, "ENRICHED")
            health = service.client.get("/health").json()
            assert (health["status"], health["relay"], health["dead"]) == ("UP", "embedded, running", 0)
            assert [process.stop() for process in (validating, enriching, service)] == [0, 0, 0]
    assert event_types(mariadb_database, document_id) == ["DocumentUploaded", "DocumentValidated"]
