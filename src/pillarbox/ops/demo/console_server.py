"""Serves the web console on a free loopback port while the demo runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing

from pillarbox.admin.admin import AdminStore

MISSING = 'console: not installed; pip install "pillarbox[console]"'


@asynccontextmanager
async def serve_console(store: AdminStore) -> AsyncIterator[str]:
    """Serve while the block is open; yields the line to show: the address, or how to install the console."""
    try:
        from pillarbox.ops.console import Console, NoLogin
        from pillarbox.ops.console.server import ConsoleServer
        from pillarbox.ops.monitor.http_server import address_of, open_port
    except ImportError:
        yield MISSING
        return
    async with aclosing(store.clone()) as beside:
        service = ConsoleServer(Console(beside, login=NoLogin("demo"), title="Pillarbox demo"))
        with closing(open_port("127.0.0.1:0", called="the demo's console")) as port:
            serving = asyncio.create_task(service.run(port))
            try:
                yield f"console: http://{address_of(port)}/"
            finally:
                service.stop()
                await serving
