"""What receivers say they did, in the order in which they did it: a text file that outlives whoever is killed.

A line is one `write` to a file opened for appending: a process killed right after it has said it, right before it has
not, and several processes may write at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

What = Literal["handled", "failed", "refused"]
"""Done; not this time, it is to come again; never, it is to become a dead letter."""


class Entry(NamedTuple):
    """One line."""

    receiver: str
    what: What
    order: str
    event_id: str


Note = Callable[[Entry], None]


class Ledger:
    """The writer's side."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, entry: Entry) -> None:
        os.write(self._file, (" ".join(entry) + "\n").encode())

    def close(self) -> None:
        os.close(self._file)


class LedgerReader:
    """The reader's side: only what came since the last look; a line that is not finished yet comes next time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def more(self) -> list[Entry]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole) + len(end)
        return [_entry(line) for line in whole.decode().splitlines()]


def _entry(line: str) -> Entry:
    receiver, what, order, event_id = line.split(" ")
    match what:
        case "handled" | "failed" | "refused":
            return Entry(receiver, what, order, event_id)
        case _:
            raise ValueError(f"the ledger has a line that nobody wrote: {line!r}")
