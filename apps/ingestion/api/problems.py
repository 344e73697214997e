"""Every error as application/problem+json: what failed, with the value, and what to do next."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import InterfaceError, OperationalError
from starlette.exceptions import HTTPException

from apps.ingestion.api.cursors import BadCursor
from apps.ingestion.documents import DocumentNotFound
from apps.ingestion.idempotency import KeyReused
from apps.runtime import correlation
from apps.runtime.problems import MEDIA_TYPE, allowed_methods

log = logging.getLogger(__name__)

Errors = Sequence[Mapping[str, str]]


class FieldError(BaseModel):
    """One invalid field of a request."""

    field: str
    message: str


class ProblemBody(BaseModel):
    """The body of an error response (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    correlationId: str
    errors: list[FieldError] = []


def problem(
    request: Request, status: int, detail: str, *, errors: Errors = (), headers: Mapping[str, str] | None = None
) -> JSONResponse:
    body: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "instance": request.url.path,
        "correlationId": correlation.current(),
    }
    if errors:
        body["errors"] = list(errors)
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        headers = allowed_methods(request)
    all_headers = {correlation.HEADER: correlation.current(), **(headers or {})}
    return JSONResponse(body, status, headers=all_headers, media_type=MEDIA_TYPE)


def add_problems(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        errors = [{"field": _field(one["loc"]), "message": one["msg"]} for one in error.errors()]
        detail = "; ".join(f"{one['field']}: {one['message']}" for one in errors)
        return problem(request, 422, detail, errors=errors)

    @app.exception_handler(BadCursor)
    def bad_cursor(request: Request, error: BadCursor) -> JSONResponse:
        return problem(request, 422, f"after: {error}", errors=[{"field": "after", "message": str(error)}])

    @app.exception_handler(KeyReused)
    def key_reused(request: Request, error: KeyReused) -> JSONResponse:
        return problem(request, 422, str(error), errors=[{"field": "Idempotency-Key", "message": str(error)}])

    @app.exception_handler(DocumentNotFound)
    def not_found(request: Request, error: DocumentNotFound) -> JSONResponse:
        return problem(request, 404, str(error))

    @app.exception_handler(HTTPException)
    def refused(request: Request, error: HTTPException) -> JSONResponse:
        return problem(request, error.status_code, str(error.detail), headers=error.headers)

    @app.exception_handler(OperationalError)
    @app.exception_handler(InterfaceError)
    def database_unavailable(request: Request, error: Exception) -> JSONResponse:
        log.error("The database did not respond: %s", type(error.__cause__ or error).__name__)
        text = "the database does not respond; nothing was stored; retry in 5 s"
        return problem(request, 503, text, headers={"Retry-After": "5"})

    @app.exception_handler(Exception)
    def broken(request: Request, _error: Exception) -> JSONResponse:
        return problem(request, 500, "internal error; report the correlationId to the operators")


def _field(location: Sequence[str | int]) -> str:
    """The field as the client knows it: `body.fileSize` is `fileSize`."""
    parts = [str(part) for part in location]
    return ".".join(parts[1:] if len(parts) > 1 else parts)
