"""`python -m pillarbox.ops.bench.writer_process`: records single events at a steady rate, in a process of its own.

It is told on standard input what to do, and prints when it began to record each event that counts.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import aclosing
from typing import Any

from pillarbox.ops.bench.measuring import WARM_UP, event
from pillarbox.ops.recorder import Recorder
from pillarbox.ops.settings import Settings


async def write(job: dict[str, Any]) -> dict[str, float]:
    recorded: dict[str, float] = {}
    async with aclosing(Recorder(Settings.load(None, {}, job["flags"]))) as recorder:
        began = 0.0
        for number in range(job["events"]):
            if number == 1:
                # The first one has opened the connection.
                began = time.monotonic()
            await asyncio.sleep(began + number / job["rate"] - time.monotonic())
            one = event(number)
            recorded[one.event_id] = time.monotonic()
            await recorder.record([one])
    return dict(list(recorded.items())[WARM_UP:])


def main() -> None:
    print(json.dumps(asyncio.run(write(json.loads(sys.stdin.read())))))


if __name__ == "__main__":
    main()
