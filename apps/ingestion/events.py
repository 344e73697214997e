"""The events of the service. Their bodies are a contract with other services: add fields, never remove one."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from apps.ingestion.documents import Document
from apps.runtime.timestamps import timestamp
from pillarbox import Event
from pillarbox.inbox import BodyFields

UPLOADED = "DocumentUploaded"
VALIDATED = "DocumentValidated"
AGGREGATE = "Document"
FIELDS = BodyFields(event_id="eventId", event_type="eventType", aggregate_id="aggregateId")
"""The body fields to use if another service sends a message without properties."""


def document_uploaded(document: Document, *, correlation_id: str | None = None) -> Event:
    return _event(UPLOADED, document, document.created_at, correlation_id)


def document_validated(document: Document) -> Event:
    return _event(VALIDATED, document, document.updated_at)


def _event(event_type: str, document: Document, at: datetime, correlation_id: str | None = None) -> Event:
    event_id, document_id = str(uuid4()), str(document.id)
    body = {
        "eventId": event_id,
        "eventType": event_type,
        "aggregateId": document_id,
        "timestamp": timestamp(at),
        "documentName": document.name,
        "contentType": document.content_type,
        "fileSize": document.file_size,
    }
    return Event(
        event_type,
        body,
        event_id=event_id,
        aggregate_type=AGGREGATE,
        aggregate_id=document_id,
        occurred_at=at,
        correlation_id=correlation_id,
    )
