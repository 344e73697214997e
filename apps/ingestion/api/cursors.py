"""A position in the list as a token: opaque to callers, validated when it is used."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from uuid import UUID

from apps.ingestion.documents import Document, Position
from apps.runtime.timestamps import timestamp


class BadCursor(Exception):
    """This API did not create the cursor."""


def write(last: Document) -> str:
    return urlsafe_b64encode(f"{timestamp(last.created_at)} {last.id}".encode()).decode().rstrip("=")


def read(cursor: str) -> Position:
    """Raises BadCursor."""
    try:
        time, document_id = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split(" ")
        created_at = datetime.fromisoformat(time)
        if created_at.tzinfo is None:
            raise ValueError
        # A time outside the range of UTC cannot be in the table.
        return Position(created_at.astimezone(UTC), UUID(document_id))
    except (ValueError, OverflowError):
        raise BadCursor("use `next` of the previous page unchanged") from None
