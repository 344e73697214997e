"""The limits of parameters and bodies."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Path, Query
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apps.notifications.api.problems import Problem, answer

HIGHEST_ID = 2**63 - 1
MAX_ID_LENGTH = len(str(HIGHEST_ID))
MAX_BODY = 64 * 1024
MAX_PAGE = 100
MAX_CURSOR = 200
MAX_EVENT_TYPES = 100
MAX_EVENT_TYPE = 255

UserId = Annotated[int, Path(ge=0, le=HIGHEST_ID, description="The id of the user.")]
NotificationId = Annotated[int, Path(ge=1, le=HIGHEST_ID)]
PageSize = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Notifications per page.")]
Cursor = Annotated[str | None, Query(max_length=MAX_CURSOR, description="`next` of the previous page.")]

_TOO_LARGE = f"the body is larger than {MAX_BODY // 1024} KiB"


class LimitedBody:
    """Rejects a body that is too large: by its Content-Length, or without one while the body is read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _content_length(scope) > MAX_BODY:
            refusal = answer(scope["path"], HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", _TOO_LARGE)
            await refusal(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > MAX_BODY:
                raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", _TOO_LARGE)
            return message

        await self._app(scope, counted, send)


def _content_length(scope: Scope) -> int:
    lengths = [value for name, value in scope["headers"] if name == b"content-length" and value.isdigit()]
    return int(lengths[0]) if lengths else 0
