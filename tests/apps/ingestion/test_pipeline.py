"""From the upload to ENRICHED: service, relay, RabbitMQ, both consumers, each a process."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pika
import psycopg
import pytest

from tests.apps.ingestion.running import BOUND, Consuming, Service, consumers
from tests.integration.consume.broker import ready
from tests.integration.rabbitmq.consumer import channel, publish_confirmed, take_all
from tests.servers.waiting import wait_until


@pytest.fixture
def variables(database: str, broker: str) -> dict[str, str]:
    return {"INGESTION_STORE": database, "INGESTION_TRANSPORT": broker}


def events(database: str, document_id: str) -> list[tuple[str, str, str | None, str | None]]:
    """Type, id, correlation and causation of the events of a document, in order."""
    with psycopg.connect(database) as connection:
        return connection.execute(
            "SELECT event_type, event_id, correlation_id, causation_id FROM outbox_event"
            " WHERE aggregate_id = %s ORDER BY id",
            [document_id],
        ).fetchall()


def test_the_published_message_has_the_documented_format(
    variables: dict[str, str], broker: str, tmp_path: Path
) -> None:
    with Service(folder=tmp_path, **variables) as service:
        document = service.upload(**{"X-Correlation-ID": "upload-7"}).json()
        wait_until(lambda: service.has_logged("Successfully published event"), bound=BOUND, what="it is published")
        [(event_type, event_id, *_)] = events(variables["INGESTION_STORE"], document["id"])
        assert service.stop() == 0
    story = service.log_text()
    assert "Found 1 pending outbox events to publish" in story
    assert f"Successfully published event: eventId={event_id}, aggregateId={document['id']}" in story
    assert "Outbox publish batch completed. Success: 1, Failures: 0" in story
    assert "Relay stopped, drained" in story
    [message] = take_all(broker, "document.uploaded.q")
    properties = message.properties
    assert (properties.message_id, properties.content_type) == (event_id, "application/json")
    assert (properties.correlation_id, properties.delivery_mode) == ("upload-7", 2)
    headers = properties.headers or {}
    assert (headers["eventType"], headers["aggregateType"], headers["aggregateId"]) == (
        *("DocumentUploaded", "Document"),
        document["id"],
    )
    assert json.loads(message.body) == {
        "eventId": event_id,
        "eventType": event_type,
        "aggregateId": document["id"],
        "timestamp": document["createdAt"],
        "documentName": "test-document.pdf",
        "contentType": "application/pdf",
        "fileSize": 1024000,
    }
    assert take_all(broker, "document.uploaded.dlq") == []


def test_documents_are_enriched_and_events_keep_correlation_and_causation(
    variables: dict[str, str], tmp_path: Path
) -> None:
    with Service(folder=tmp_path, **variables) as service, consumers(tmp_path, **variables) as (validating, enriching):
        mine = str(uuid4())
        documents = [service.upload(**{"X-Correlation-ID": mine}).json() for _ in range(5)]
        for document in documents:
            enriched = service.wait_for(document["id"], "ENRICHED")
            assert (enriched["createdBy"], enriched["updatedBy"]) == ("test-user", "enrichment-service")
            uploaded, validated = events(variables["INGESTION_STORE"], document["id"])
            assert (uploaded[0], *uploaded[2:]) == ("DocumentUploaded", mine, None)
            assert (validated[0], *validated[2:]) == ("DocumentValidated", mine, uploaded[1])
        assert f"[{mine}] Document validated by validation-service. ID: {documents[0]['id']}" in validating.log_text()
        assert service.client.get("/health").json()["relay"] == "embedded, running"
        # Each process finishes its events in flight.
        assert [process.stop() for process in (validating, enriching, service)] == [0, 0, 0]
    assert "validation-service stopped, drained" in validating.log_text()


def test_a_duplicate_message_has_one_effect(variables: dict[str, str], broker: str, tmp_path: Path) -> None:
    with Service(folder=tmp_path, **variables) as service:
        document = service.upload().json()
        wait_until(lambda: service.has_logged("Successfully published event"), bound=BOUND, what="it is published")
        [message] = take_all(broker, "document.uploaded.q")
        with channel(broker) as producer:
            producer.confirm_delivery()
            for _ in range(2):
                publish_confirmed(producer, "doc.events", "document.uploaded", message.body, message.properties)
        with Consuming("validate", tmp_path, variables) as validating:
            wait_until(
                lambda: validating.has_logged("skipped a duplicate"), bound=BOUND, what="the duplicate is skipped"
            )
            assert service.document(document["id"])["status"] == "VALIDATED"
        kinds = [event_type for event_type, *_ in events(variables["INGESTION_STORE"], document["id"])]
        assert kinds == ["DocumentUploaded", "DocumentValidated"]


def test_a_message_without_properties_is_handled(variables: dict[str, str], broker: str, tmp_path: Path) -> None:
    with Service(folder=tmp_path, **variables) as service:
        document = service.upload().json()
        wait_until(lambda: service.has_logged("Successfully published event"), bound=BOUND, what="it is published")
        [message] = take_all(broker, "document.uploaded.q")
        with channel(broker) as producer:
            producer.confirm_delivery()
            publish_confirmed(producer, "doc.events", "document.uploaded", message.body)
        with Consuming("validate", tmp_path, variables):
            service.wait_for(document["id"], "VALIDATED")


def test_an_event_that_can_never_succeed_is_dead_lettered_with_its_reason(
    variables: dict[str, str], broker: str, tmp_path: Path
) -> None:
    unknown = str(uuid4())
    with Consuming("validate", tmp_path, variables) as validating:
        wait_until(lambda: queue_exists(broker, "document.uploaded.q"), bound=BOUND, what="the queue is declared")
        with channel(broker) as producer:
            producer.confirm_delivery()
            for body in ({"aggregateId": unknown}, {"aggregateId": 7}, ["nothing"]):
                properties = pika.BasicProperties(
                    message_id=str(uuid4()), type="DocumentUploaded", content_type="application/json"
                )
                # To the queue by name, because its binding may be declared a moment later.
                publish_confirmed(producer, "", "document.uploaded.q", json.dumps(body).encode(), properties)
        wait_until(lambda: ready(broker, "document.uploaded.dlq") == 3, bound=BOUND, what="three dead letters")
        assert "Traceback" not in validating.log_text()
    reasons = {
        str((one.properties.headers or {})["pillarbox-reason"]) for one in take_all(broker, "document.uploaded.dlq")
    }
    assert any(f"there is no document {unknown}" in reason for reason in reasons)
    assert any("no aggregateId that is a UUID" in reason for reason in reasons)


def queue_exists(broker: str, queue: str) -> bool:
    try:
        return ready(broker, queue) >= 0
    except pika.exceptions.ChannelClosedByBroker:
        return False
