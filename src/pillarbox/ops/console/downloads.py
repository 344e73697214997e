"""Lines as a file to be kept, however many there are."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import Response, StreamingResponse


async def stream_file(lines: AsyncIterator[str], name: str, *, media_type: str) -> Response:
    """The first line is fetched before anything is sent: where there is none to be had, that is what is answered."""
    first = await anext(lines, "")

    async def whole() -> AsyncIterator[str]:
        yield first
        async for line in lines:
            yield line

    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(whole(), media_type=media_type, headers=headers)
