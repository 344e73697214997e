"""What a drill and one of its relays or readers share: a few numbers in a file that both have mapped.

They survive a SIGKILL, so that the drill knows what was in flight at that moment.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from pillarbox.failpoints import POINTS

_SIZE = 24
"""Three numbers of 8 bytes."""
_IN_FLIGHT, _POINT, _HITS = range(3)


class Control:
    """The numbers of one process."""

    def __init__(self, path: Path) -> None:
        with path.open("a+b") as file:
            if path.stat().st_size < _SIZE:
                file.write(bytes(_SIZE))
                file.flush()
            self._memory = mmap.mmap(file.fileno(), _SIZE)

    @property
    def in_flight(self) -> int:
        """Messages that the process had in flight when it last reported."""
        return self._read(_IN_FLIGHT)

    @in_flight.setter
    def in_flight(self, count: int) -> None:
        self._write(_IN_FLIGHT, count)

    def freeze_at(self, point: str, hits: int) -> None:
        """Ask the process to freeze itself when it reaches a point for that many times with messages in flight."""
        self._write(_HITS, hits)
        self._write(_POINT, POINTS.index(point) + 1)

    def withdraw(self) -> None:
        """Withdraw the request of `freeze_at`."""
        self._write(_POINT, 0)

    def is_due(self, point: str) -> bool:
        """Whether the process must freeze itself now. Call it where the process reaches a point."""
        if self._read(_POINT) != POINTS.index(point) + 1 or not self.in_flight:
            return False
        self._write(_HITS, self._read(_HITS) - 1)
        if self._read(_HITS) > 0:
            return False
        self.withdraw()
        return True

    def close(self) -> None:
        self._memory.close()

    def _read(self, number: int) -> int:
        return int.from_bytes(self._memory[8 * number : 8 * number + 8], "little", signed=True)

    def _write(self, number: int, value: int) -> None:
        self._memory[8 * number : 8 * number + 8] = value.to_bytes(8, "little", signed=True)
