"""`python -m pillarbox.ops.bench.writer_process`: records single events at a steady rate, in its own process.

It reads its job from standard input, and prints the start time of each measured event.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import aclosing
from typing import Any

from pillarbox.ops.bench.measurement import WARM_UP, event
from pillarbox.ops.recorder import Recorder
from pillarbox.ops.settings import Settings


async def write(job: dict[str, Any]) -> dict[str, float]:
    recorded: dict[str, float] = {}
    async with aclosing(Recorder(Settings.load(None, job["variables"]))) as recorder:
        began = 0.0
        for number in range(job["events"]):
            if number == 1:
                # The clock starts after the first event, which opens the connection.
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
