"""What a worker and the harness say to each other: lines on standard input and output.

The worker prints `ready`, waits for `go`, works until `stop`, and prints what it used as a line of JSON.
"""

from __future__ import annotations

import asyncio
import cProfile
import json
import sys
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any


def job() -> dict[str, Any]:
    """What the harness asked for: the worker's only argument."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    return given


def run_on_loop(work: Coroutine[Any, Any, None], given: Mapping[str, Any]) -> None:
    """Run a peer on asyncio's event loop or, where the job says so, on uvloop's."""
    if given.get("uvloop"):
        import uvloop

        uvloop.run(work)
    else:
        asyncio.run(work)


class Control:
    """A worker's end of the conversation. With `profile`, Python calls are counted, which takes time of its own."""

    def __init__(self, *, profile: bool = False) -> None:
        self._profile = cProfile.Profile() if profile else None
        self._began = 0.0
        self._lines: asyncio.Queue[str] = asyncio.Queue()

    async def ready(self) -> None:
        """Print that the work can begin, and return when the harness starts it."""
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin.fileno(), lambda: self._lines.put_nowait(sys.stdin.readline().strip()))
        print("ready", flush=True)
        await self._expect("go")
        self._began = time.process_time()
        if self._profile is not None:
            self._profile.enable()

    async def stopped(self) -> None:
        """Return when the harness has seen enough."""
        await self._expect("stop")

    def report(self, **more: object) -> None:
        """Print what was used since `ready`, and further results."""
        if self._profile is not None:
            self._profile.disable()
        calls = None if self._profile is None else sum(entry.callcount for entry in self._profile.getstats())
        used = {
            "cpu": time.process_time() - self._began,
            "whole_cpu": time.process_time(),
            "memory": peak_memory(),
            "calls": calls,
        }
        print(json.dumps(used | more), flush=True)

    async def _expect(self, word: str) -> None:
        said = await self._lines.get()
        if said != word:
            # An empty line is the end of the input: the harness has ended.
            raise SystemExit(f"the harness said {said!r}, not {word!r}")


def peak_memory() -> float:
    """The most memory that this process ever had, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


def write_times(path: str, times: Mapping[str, float]) -> None:
    """Leave times by event for the harness, which reads them when the worker has ended."""
    Path(path).write_text(json.dumps(times))
