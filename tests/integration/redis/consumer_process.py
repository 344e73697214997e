"""A process that receives messages and acknowledges none, to be killed: `consumer_process.py URL STREAM COUNT`."""

import asyncio
import sys

from pillarbox.transports.redis import RedisSource


async def main(url: str, stream: str, count: str) -> None:
    source = RedisSource(url, stream=stream, check_interval="50ms")
    for _ in range(int(count)):
        print((await source.receive()).incoming.event_id, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
