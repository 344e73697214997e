"""A hand-written Redis, to end a connection after exactly as many replies as a test wants: no real server can be made
to do that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from hiredis import Reader

Reply = Callable[[list[bytes]], bytes | None]
"""The reply to a command; None: close the connection."""

_HELLO = b"*4\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
_TIME = b"*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"


@asynccontextmanager
async def scripted(reply: Reply) -> AsyncIterator[str]:
    """The URL of a server that replies like this to every command after the handshake."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parser = Reader()
        with suppress(OSError):
            while data := await reader.read(65_536):
                parser.feed(data)
                while (command := parser.gets()) is not False:
                    name = command[0].upper()
                    answer = {b"HELLO": _HELLO, b"CONFIG": b"*0\r\n", b"TIME": _TIME}.get(name) or reply(command)
                    if answer is None:
                        await writer.drain()
                        writer.close()
                        return
                    writer.write(answer)

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(lambda _: writer.close())

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
