"""The paths of the API."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response

from apps.ingestion.api import cursors
from apps.ingestion.api.bodies import DocumentBody, DocumentPage, NewDocument
from apps.ingestion.service import DocumentService
from apps.runtime import correlation
from apps.runtime.problems import describe

Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[!-~]+$")]
ANYWHERE = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
Limit = Annotated[int, Query(ge=1, le=200)]


def document_routes(service: DocumentService) -> APIRouter:
    """The functions are not async: FastAPI runs each in a thread, because its transaction blocks."""
    router = APIRouter(prefix="/api/v1/documents", tags=["documents"], responses=describe(*ANYWHERE))

    @router.post("", status_code=201, responses=describe(HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
    def upload(body: NewDocument, response: Response, key: Key = None) -> DocumentBody:
        document = service.upload(body.to_upload(), key=key, correlation_id=correlation.current())
        response.headers["Location"] = f"{router.prefix}/{document.id}"
        return DocumentBody.of(document)

    @router.get("")
    def newest(limit: Limit = 50, after: str | None = None) -> DocumentPage:
        position = None if after is None else cursors.read(after)
        found = service.newest(after=position, most=limit + 1)  # one more shows whether there is a next page
        shown = found[:limit]
        return DocumentPage(
            items=[DocumentBody.of(document) for document in shown],
            next=cursors.write(shown[-1]) if len(found) > limit else None,
        )

    @router.get("/{id}", responses=describe(HTTPStatus.NOT_FOUND))
    def one(id: UUID) -> DocumentBody:
        return DocumentBody.of(service.find(id))

    return router
