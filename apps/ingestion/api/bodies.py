"""Request and response bodies: camelCase, times in UTC with Z, every text bounded and without control characters."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Annotated, Self
from unicodedata import category
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, PlainSerializer, StringConstraints
from pydantic.alias_generators import to_camel

from apps.ingestion.documents import Document, Status, Upload
from apps.ingestion.health import Health
from apps.runtime.timestamps import timestamp

MAX_FILE = 10 * 2**30
DEEPEST_METADATA = 32
"""Levels; the size is bounded with the body."""

_CONTENT_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(; ?[\w.+-]+=[\w.+-]+)*", re.ASCII)


def _without_controls(text: str) -> str:
    """A database cannot store NUL, and a line break would split a log line."""
    if any(category(character) == "Cc" for character in text):
        raise ValueError("control characters are not allowed")
    return text


def _storable(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Any JSON object that every database can store and every parser can read."""
    stack: list[tuple[object, int]] = [(metadata, 1)]
    while stack:
        value, depth = stack.pop()
        if depth > DEEPEST_METADATA:
            raise ValueError(f"at most {DEEPEST_METADATA} levels of nesting are allowed")
        match value:
            case str():
                _check_text(value)
            case float() if not math.isfinite(value):
                raise ValueError("NaN, Infinity and numbers beyond 1.7e308 are not JSON")
            case dict():
                for name in value:
                    _check_text(name)
                stack += [(one, depth + 1) for one in value.values()]
            case list():
                stack += [(one, depth + 1) for one in value]
    return metadata


def _check_text(text: str) -> None:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("NUL and halves of surrogate pairs are not allowed")


def _content_type(text: str) -> str:
    if not _CONTENT_TYPE.fullmatch(text):
        raise ValueError("write type/subtype, for example application/pdf")
    return text


Bounded = StringConstraints(strip_whitespace=True, min_length=1, max_length=255)
Text = Annotated[str, Bounded, AfterValidator(_without_controls)]
Metadata = Annotated[dict[str, JsonValue], AfterValidator(_storable)]
ContentType = Annotated[str, Bounded, AfterValidator(_content_type)]


Moment = Annotated[datetime, PlainSerializer(timestamp, when_used="json")]


class Body(BaseModel):
    """snake_case in Python, camelCase in JSON, nothing unknown."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class NewDocument(Body):
    """The body of `POST /api/v1/documents`."""

    name: Text
    content_type: ContentType
    file_size: Annotated[int, Field(strict=True, ge=0, le=MAX_FILE)]
    metadata: Metadata = {}
    uploaded_by: Text

    def to_upload(self) -> Upload:
        return Upload(
            name=self.name,
            content_type=self.content_type,
            file_size=self.file_size,
            metadata=self.metadata,
            uploaded_by=self.uploaded_by,
        )


class DocumentBody(Body):
    """A document in a response."""

    model_config = ConfigDict(from_attributes=True)

    id: UUID
    name: str
    content_type: str
    file_size: int
    status: Status
    metadata: dict[str, JsonValue]
    created_at: Moment
    updated_at: Moment
    created_by: str
    updated_by: str

    @classmethod
    def of(cls, document: Document) -> Self:
        return cls.model_validate(document)


class DocumentPage(Body):
    """Documents, the newest first; `next` is the `after` of the next page, null on the last one."""

    items: list[DocumentBody]
    next: str | None


class HealthBody(Body):
    """UP or DOWN, and the reason."""

    model_config = ConfigDict(from_attributes=True)

    status: str
    database: str
    relay: str
    backlog: int | None
    oldest_seconds: float | None
    dead: int | None
    reason: str | None

    @classmethod
    def of(cls, health: Health) -> Self:
        return cls.model_validate(health)
