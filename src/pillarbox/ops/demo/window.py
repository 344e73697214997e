"""The web console beside the demo: on a free port of this machine, for as long as the demo plays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, closing

from pillarbox.admin.admin import AdminStore

MISSING = 'to watch it in a browser, too: pip install "pillarbox[console]"'


@asynccontextmanager
async def window(store: AdminStore) -> AsyncIterator[str]:
    """What to tell people: where the console is, or what it needs."""
    try:
        from pillarbox.ops.console import Console, NoLogin
        from pillarbox.ops.console.serving import Service
        from pillarbox.ops.monitor.serving import address_of, open_port
    except ImportError:
        yield MISSING
        return
    async with aclosing(store.beside()) as beside:
        service = Service(Console(beside, login=NoLogin("demo"), title="Pillarbox demo"))
        with closing(open_port("127.0.0.1:0", called="the demo's console")) as port:
            serving = asyncio.create_task(service.run(port))
            try:
                yield f"console: http://{address_of(port)}/"
            finally:
                service.stop()
                await serving
