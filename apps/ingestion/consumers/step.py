"""Advances a document by one step when an event requests it."""

from __future__ import annotations

import logging
from uuid import UUID

from sqlalchemy import Connection

from apps.ingestion import documents
from apps.ingestion.documents import Document, DocumentNotFound, InvalidTransition, Status
from apps.runtime import correlation
from pillarbox import PermanentError
from pillarbox.inbox import ConsumedEvent

log = logging.getLogger(__name__)


def take_step(connection: Connection, event: ConsumedEvent, *, to: Status, by: str) -> Document:
    """Advance the document of this event. Raises PermanentError for an event that can never succeed."""
    correlation.use(event.correlation_id)
    try:
        document = documents.advance(connection, UUID(event.payload["aggregateId"]), to=to, by=by)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise PermanentError(f"event {event.event_id} has no aggregateId that is a UUID") from None
    except (DocumentNotFound, InvalidTransition) as error:
        raise PermanentError(f"event {event.event_id}: {error}") from error
    log.info("Document %s by %s. ID: %s", to.lower(), by, document.id)
    return document
