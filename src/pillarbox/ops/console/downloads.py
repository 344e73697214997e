"""Responses that stream lines as a file."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse


async def stream_file(lines: AsyncIterator[str], name: str, *, media_type: str) -> Response:
    """Stream lines as a download. The first line is fetched first, so that an error becomes an error response."""
    first = await anext(lines, "")

    async def whole() -> AsyncIterator[str]:
        yield first
        async for line in lines:
            yield line

    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(whole(), media_type=media_type, headers=headers)
