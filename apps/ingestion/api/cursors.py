"""A place in the list as a token: opaque to callers, checked when it comes back."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime
from uuid import UUID

from apps.ingestion.documents import Document, Position


class BadCursor(Exception):
    """It was not made here."""


def write(last: Document) -> str:
    return urlsafe_b64encode(f"{last.created_at.isoformat()} {last.id}".encode()).decode().rstrip("=")


def read(cursor: str) -> Position:
    """Raises BadCursor."""
    try:
        time, document_id = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split(" ")
        position = Position(datetime.fromisoformat(time), UUID(document_id))
    except ValueError:
        raise BadCursor("take `next` of the page before, as it is") from None
    if position.created_at.tzinfo is None:
        raise BadCursor("take `next` of the page before, as it is")
    return position
