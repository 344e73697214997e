"""What must stay flat during a soak: the memory of processes that are never killed, and connections to the servers."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

INTERVAL = 2.0
SLACK = 1.15
"""A median may grow by so much between the second and the last quarter of a run."""
MORE_MIB = 8.0
MORE_CONNECTIONS = 6.0


def memory_of(pid: int) -> float | None:
    """Return the resident memory of a process in MiB; None once it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def growth(values: Sequence[float], *, more: float) -> str:
    """Return how the values grew from the second to the last quarter; "" if they are flat."""
    if len(values) < 8:
        return "too few samples"
    quarter = len(values) // 4
    before, after = statistics.median(values[quarter : 2 * quarter]), statistics.median(values[-quarter:])
    return "" if after <= before * SLACK + more else f"grew from {before:.1f} to {after:.1f}"


@dataclass(slots=True)
class ResourceLog:
    """Samples numbers in a thread."""

    sources: Mapping[str, Callable[[], float | None]]
    samples: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    _over: Event = field(default_factory=Event)
    _thread: Thread | None = None

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="resources", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def violations(self) -> list[str]:
        """Return one sentence per number that is not flat."""
        found: list[str] = []
        for name in self.sources:
            more = MORE_MIB if name.startswith("MiB") else MORE_CONNECTIONS
            if how := growth(self.samples.get(name, []), more=more):
                found.append(f"{name}: {how}")
        return found

    def as_json(self) -> dict[str, Any]:
        """Return first, median, last and largest sample of each number."""
        return {
            name: {
                "samples": len(values),
                "first": round(values[0], 1),
                "median": round(statistics.median(values), 1),
                "last": round(values[-1], 1),
                "max": round(max(values), 1),
            }
            for name, values in self.samples.items()
            if values
        }

    def _run(self) -> None:
        began = time.monotonic()
        while not self._over.wait(max(0.0, INTERVAL - (time.monotonic() - began) % INTERVAL)):
            for name, read in self.sources.items():
                if (value := read()) is not None:
                    self.samples.setdefault(name, []).append(value)
