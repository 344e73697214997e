"""Limits the size of request bodies."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 256 * 1024


class BodyLimit:
    """Rejects a body that is too large while it is received, with or without Content-Length."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        read = int(announced) if announced.isdecimal() and int(announced) > MAX_BODY else 0

        async def receive_bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > MAX_BODY:
                raise HTTPException(413, f"the body is larger than {MAX_BODY} bytes; send less")
            return message

        await self._app(scope, receive_bounded, send)
