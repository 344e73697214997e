"""A receiver of webhooks as a process of its own, which counts requests: `{"port": …}`."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from benchmarks.workers.control import Control, job


async def run(work: dict[str, Any]) -> None:
    received = 0

    async def receive(request: web.Request) -> web.Response:
        nonlocal received
        await request.read()
        received += 1
        return web.Response(status=204)

    async def count(_: web.Request) -> web.Response:
        return web.Response(text=str(received))

    async def reset(_: web.Request) -> web.Response:
        nonlocal received
        received = 0
        return web.Response(text="0")

    application = web.Application()
    application.add_routes([web.post("/hook", receive), web.get("/count", count), web.get("/reset", reset)])
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", work["port"]).start()
    await Control().ready()


if __name__ == "__main__":
    asyncio.run(run(job()))
