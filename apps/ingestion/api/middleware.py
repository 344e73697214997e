"""Around every request: a correlation id, and no body larger than allowed."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from apps.ingestion import correlation

LARGEST_BODY = 256 * 1024


class Correlation:
    """Takes X-Correlation-ID from the request, or makes one where there is none that is usable; answers with it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(correlation.HEADER, "")
        correlation_id = given if correlation.is_valid(given) else correlation.new()
        correlation.use(correlation_id)

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[correlation.HEADER] = correlation_id
            await send(message)

        await self._app(scope, receive, send_with_id)


class BodyLimit:
    """Refuses a body while it comes in, whatever its Content-Length says or does not say."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        read = int(announced) if announced.isdecimal() and int(announced) > LARGEST_BODY else 0

        async def receive_bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > LARGEST_BODY:
                raise HTTPException(413, f"the body may have {LARGEST_BODY} bytes; send less")
            return message

        await self._app(scope, receive_bounded, send)
