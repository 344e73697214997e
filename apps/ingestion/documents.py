"""A document, and its statements. Each runs in the caller's transaction and does not commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple, Self
from uuid import UUID, uuid4

from sqlalchemy import Connection, Row, insert, select, tuple_, update

from apps.ingestion.tables import documents


class Status(StrEnum):
    """The states of a document, in order; it never goes back."""

    UPLOADED = "UPLOADED"
    VALIDATED = "VALIDATED"
    ENRICHED = "ENRICHED"


PREVIOUS = {Status.VALIDATED: Status.UPLOADED, Status.ENRICHED: Status.VALIDATED}


class DocumentNotFound(Exception):
    """There is no document with this id."""


class InvalidTransition(Exception):
    """The document is not in the state from which this step starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """The fields of a new document."""

    name: str
    content_type: str
    file_size: int
    metadata: Mapping[str, Any]
    uploaded_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A row of `documents`."""

    id: UUID
    name: str
    content_type: str
    file_size: int
    status: Status
    metadata: Mapping[str, Any]
    created_at: datetime
    updated_at: datetime
    created_by: str
    updated_by: str

    @classmethod
    def uploaded(cls, upload: Upload) -> Self:
        """A new document, uploaded now."""
        now = datetime.now(UTC)
        return cls(
            id=uuid4(),
            name=upload.name,
            content_type=upload.content_type,
            file_size=upload.file_size,
            status=Status.UPLOADED,
            metadata=dict(upload.metadata),
            created_at=now,
            updated_at=now,
            created_by=upload.uploaded_by,
            updated_by=upload.uploaded_by,
        )

    def as_uploaded(self) -> Document:
        """The document as it was uploaded."""
        return replace(self, status=Status.UPLOADED, updated_at=self.created_at, updated_by=self.created_by)


class Position(NamedTuple):
    """The last document of a page."""

    created_at: datetime
    id: UUID


def add(connection: Connection, document: Document) -> None:
    connection.execute(insert(documents).values(asdict(document)))


def find(connection: Connection, document_id: UUID) -> Document:
    """Raises DocumentNotFound."""
    row = connection.execute(select(documents).where(documents.c.id == document_id)).one_or_none()
    if row is None:
        raise DocumentNotFound(f"there is no document {document_id}")
    return _document(row)


def newest(connection: Connection, *, after: Position | None, most: int) -> list[Document]:
    """Documents, newest first, or those after a position; reads only one page of the index."""
    position = tuple_(documents.c.created_at, documents.c.id)
    statement = select(documents).order_by(documents.c.created_at.desc(), documents.c.id.desc()).limit(most)
    if after is not None:
        statement = statement.where(position < tuple_(after.created_at, after.id, types=[one.type for one in position]))
    return [_document(row) for row in connection.execute(statement)]


def advance(connection: Connection, document_id: UUID, *, to: Status, by: str) -> Document:
    """Advance the document by one step. Raises DocumentNotFound and InvalidTransition."""
    done = connection.execute(
        update(documents)
        .where(documents.c.id == document_id, documents.c.status == PREVIOUS[to])
        .values(status=to, updated_at=datetime.now(UTC), updated_by=by)
    )
    found = find(connection, document_id)  # MariaDB has no RETURNING for UPDATE
    if not done.rowcount:
        raise InvalidTransition(f"document {document_id} is {found.status} and cannot become {to}")
    return found


def _document(row: Row[Any]) -> Document:
    values = row._asdict()
    return Document(**values | {"status": Status(values["status"])})
