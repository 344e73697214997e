"""The ledger: a text file in which each receiver records what it did with an event.

Each entry is one line, written with one `write` to a file opened for appending. An entry therefore survives SIGKILL as
soon as `append` has returned, and several processes can write at the same time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

Status = Literal["handled", "failed", "rejected"]
"""handled: done. failed: the relay retries. rejected: permanently, the event becomes a dead letter."""


class DemoLedgerEntry(NamedTuple):
    """One line of the ledger."""

    receiver: str
    status: Status
    order: str
    event_id: str


Append = Callable[[DemoLedgerEntry], None]


class LedgerWriter:
    """Appends entries to the ledger."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def append(self, entry: DemoLedgerEntry) -> None:
        os.write(self._file, (" ".join(entry) + "\n").encode())

    def close(self) -> None:
        os.close(self._file)


class LedgerReader:
    """Reads the entries that were added since the last call; an incomplete line is read by a later call."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read_new(self) -> list[DemoLedgerEntry]:
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            complete, end, _ = file.read().rpartition(b"\n")
        self._offset += len(complete) + len(end)
        return [_parse(line) for line in complete.decode().splitlines()]


def _parse(line: str) -> DemoLedgerEntry:
    receiver, status, order, event_id = line.split(" ")
    match status:
        case "handled" | "failed" | "rejected":
            return DemoLedgerEntry(receiver, status, order, event_id)
        case _:
            raise ValueError(f"the ledger has an invalid line: {line!r}")
