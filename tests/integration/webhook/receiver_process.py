"""A receiver in a process of its own, to be killed: `python -m tests.integration.webhook.receiver_process PORT FILE`.

It appends the id of each event to FILE, on disk, before it accepts the event.
"""

import asyncio
import os
import sys

from aiohttp import web

from pillarbox.transports.webhook.headers import decoded


async def main(port: int, file: str) -> None:
    journal = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    async def accept(request: web.BaseRequest) -> web.Response:
        await request.read()
        os.write(journal, f"{decoded(request.headers['webhook-id'])}\n".encode())
        return web.Response(status=204)

    runner = web.ServerRunner(web.Server(accept))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
