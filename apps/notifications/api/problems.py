"""Every error of the API has one form: application/problem+json (RFC 9457).

Invariant: a client learns what is wrong with its request. Internal details are logged and not sent.
"""

from __future__ import annotations

import logging
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apps.runtime.problems import MEDIA_TYPE, allowed_methods

logger = logging.getLogger("notifications.api")

MAX_ERRORS = 20
_NAMES = "urn:notifications:problem:"


class Problem(HTTPException):
    """Raise it to return an error. `kind` is a stable name for programs."""

    def __init__(self, status: HTTPStatus, kind: str, detail: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)
        self.kind = kind


class FieldError(BaseModel):
    """One invalid field of a request."""

    field: str
    detail: str


class ProblemBody(BaseModel):
    """The body of an error response (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FieldError] = []


def handle_problems(app: FastAPI) -> None:
    """Make `app` return every error as a problem."""
    app.add_exception_handler(HTTPException, _raised)
    app.add_exception_handler(RequestValidationError, _invalid)
    for unavailable in (OperationalError, InterfaceError, NoConnection):
        app.add_exception_handler(unavailable, _database_unavailable)
    app.add_middleware(UnexpectedErrors)


def answer(
    path: str,
    status: HTTPStatus,
    kind: str,
    detail: str,
    *,
    errors: list[FieldError] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """A problem as a response."""
    body = ProblemBody(
        type=f"{_NAMES}{kind}", title=status.phrase, status=status, detail=detail, instance=path, errors=errors or []
    )
    return JSONResponse(body.model_dump(), status, headers, MEDIA_TYPE)


def _raised(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - what the handler was registered for
    status = HTTPStatus(error.status_code)
    kind = error.kind if isinstance(error, Problem) else status.phrase.lower().replace(" ", "-")
    headers = dict(error.headers) if error.headers else None
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers = allowed_methods(request)
    return answer(request.url.path, status, kind, str(error.detail), headers=headers)


def _invalid(request: Request, error: Exception) -> JSONResponse:
    """The invalid values are not returned: they may be large or secret."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - what the handler was registered for
    found = error.errors()
    errors = [FieldError(field=".".join(map(str, one["loc"])), detail=one["msg"]) for one in found[:MAX_ERRORS]]
    detail = f"the request has {len(found)} error{'' if len(found) == 1 else 's'}; see errors"
    return answer(request.url.path, HTTPStatus.UNPROCESSABLE_ENTITY, "invalid", detail, errors=errors)


def _database_unavailable(request: Request, _: Exception) -> JSONResponse:
    status = HTTPStatus.SERVICE_UNAVAILABLE
    return answer(
        request.url.path, status, "database", "the database is unavailable; retry in 5 s", headers={"Retry-After": "5"}
    )


class UnexpectedErrors:
    """Logs unexpected exceptions, and returns a problem without their details."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def send_and_remember(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_remember)
        except Exception:
            if scope["type"] != "http" or begun:
                raise
            logger.exception("%s %s failed", scope["method"], scope["path"])
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            response = answer(scope["path"], status, "unexpected", "internal error; it was logged")
            await response(scope, receive, send)
