"""The use cases. Every method is one transaction: the document and its event are committed together or not at all."""

from __future__ import annotations

import logging
from datetime import timedelta
from uuid import UUID

from sqlalchemy import Engine

from apps.ingestion import documents, idempotency
from apps.ingestion.documents import Document, Position, Upload
from apps.ingestion.events import document_uploaded
from pillarbox import Outbox

log = logging.getLogger(__name__)


class DocumentService:
    """The operations on documents, independent of HTTP, RabbitMQ and the relay."""

    def __init__(
        self, engine: Engine, outbox: Outbox | None = None, *, keep_keys: timedelta = timedelta(hours=24)
    ) -> None:
        self._engine = engine
        self._outbox = outbox or Outbox()
        self._keep_keys = keep_keys

    def upload(self, upload: Upload, *, key: str | None = None, correlation_id: str | None = None) -> Document:
        """Create a document; for a known key with the same upload, return the existing one. Raises KeyReused."""
        document = Document.uploaded(upload)
        with self._engine.begin() as connection:
            if key is not None:
                earlier = idempotency.claim(connection, key, upload, document.id, keep=self._keep_keys)
                if earlier is not None:
                    return documents.find(connection, earlier).as_uploaded()
            documents.add(connection, document)
            self._outbox.record(connection, document_uploaded(document, correlation_id=correlation_id))
        log.info("Document uploaded successfully. ID: %s", document.id)
        return document

    def find(self, document_id: UUID) -> Document:
        """Raises DocumentNotFound."""
        with self._engine.begin() as connection:
            return documents.find(connection, document_id)

    def newest(self, *, after: Position | None = None, most: int = 50) -> list[Document]:
        with self._engine.begin() as connection:
            return documents.newest(connection, after=after, most=most)

    def delete_expired_keys(self) -> int:
        """Delete expired Idempotency-Keys; returns how many."""
        with self._engine.begin() as connection:
            return idempotency.delete_expired(connection, keep=self._keep_keys)
