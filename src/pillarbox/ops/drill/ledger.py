"""The ledgers of a drill: files that only writers and readers append to, independent of the relays.

A writer appends the events of a transaction before it commits, and the outcome after that. A reader appends each
message that it receives before anything else. Times are those of the monotonic clock, which all processes of a machine
share.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pillarbox.ops.drill.checker import WriterLedger

ARRIVALS = "received.txt"
INTERRUPTIONS = "interruptions.txt"
HOLDS = ("hold", "throttle")
"""While one of these files exists, no writer begins a transaction: a fault needs it, or too many events are pending."""

Outcome = Literal["committed", "rolled back", "unknown"]
KeyedEvent = tuple[str, str]
"""The ordering key and the id of an event."""


class AppendedFile:
    """A file that several processes append lines to, each in one write."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(self, line: str) -> None:
        """Append one line."""
        os.write(self._file, line.encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)


class ArrivalLog:
    """Appends what a reader receives."""

    def __init__(self, folder: Path) -> None:
        self._file = AppendedFile(folder / ARRIVALS)

    def add(self, event_id: str) -> None:
        """Append an arrival."""
        self._file.append(f"{time.monotonic():.6f} {event_id}")

    def close(self) -> None:
        self._file.close()


class Arrival(NamedTuple):
    """A message that a reader received."""

    at: float
    event_id: str


def read_arrivals(folder: Path) -> list[Arrival]:
    """Return all arrivals in the order of arrival."""
    if not (folder / ARRIVALS).exists():
        return []
    with (folder / ARRIVALS).open(encoding="utf-8") as lines:
        parts = (line.rstrip("\n").partition(" ") for line in lines)
        return [Arrival(float(at), event_id) for at, _, event_id in parts]


class LineCount:
    """Counts the lines of a ledger; reads only what is new."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.lines = 0

    def update(self) -> int:
        """Return how many lines the ledger has; 0 if it does not exist."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._read)
                for chunk in iter(lambda: file.read(1 << 20), b""):
                    self._read += len(chunk)
                    self.lines += chunk.count(b"\n")
        return self.lines


class TransactionLog:
    """Appends the transactions of one writer."""

    def __init__(self, folder: Path, writer: str) -> None:
        self._file = AppendedFile(folder / f"{writer}.jsonl")

    def intend(self, number: str, kept: Sequence[KeyedEvent], undone: Sequence[KeyedEvent]) -> None:
        """Append the events of a transaction before it begins: those it keeps, and those it rolls back itself."""
        self._file.append(json.dumps(["intent", number, kept, undone]))

    def end(self, number: str, outcome: Outcome, events: int) -> None:
        """Append what became of a transaction, and how many events it committed."""
        self._file.append(json.dumps([outcome, number, time.monotonic(), events]))

    def close(self) -> None:
        self._file.close()


@dataclass(slots=True)
class LoggedTransaction:
    """A transaction of a writer."""

    number: str
    kept: list[KeyedEvent]
    undone: list[KeyedEvent]
    outcome: Outcome = "unknown"
    ended_at: float = 0.0


@dataclass(slots=True)
class Writings:
    """The transactions of all writers, with every outcome known."""

    ledger: WriterLedger = field(default_factory=WriterLedger)
    committed_at: dict[str, float] = field(default_factory=dict[str, float])
    """Event id → when its commit was reported; events of a commit whose reply was lost are missing."""
    unknown: int = 0
    """Transactions whose outcome only the database knew."""

    def add(self, transactions: Iterable[LoggedTransaction], in_database: set[str]) -> None:
        """Add the transactions of one writer; in_database: the numbers that the database has."""
        for one in transactions:
            committed = one.outcome == "committed"
            if one.outcome == "unknown":
                self.unknown += 1
                committed = one.number in in_database
            elif committed:
                self.committed_at.update((event_id, one.ended_at) for _, event_id in one.kept)
            self.ledger.roll_back(one.undone if committed else one.undone + one.kept)
            if committed:
                self.ledger.commit(one.kept)


def read_writings(folder: Path, *, in_database: set[str]) -> Writings:
    """Read the transactions of all writers; in_database: the numbers of those that the database has."""
    writings = Writings()
    for path in sorted(folder.glob("writer-*.jsonl")):
        writings.add(read_transactions(path), in_database)
    return writings


def has_received(folder: Path, ledger: WriterLedger) -> bool:
    """Whether every committed event has arrived at least once."""
    arrived = {arrival.event_id for arrival in read_arrivals(folder)}
    return all(event_id in arrived for ids in ledger.committed.values() for event_id in ids)


def read_transactions(path: Path) -> Iterator[LoggedTransaction]:
    """Return the transactions of one writer, in their order."""
    pending: dict[str, LoggedTransaction] = {}
    for fields in _lines(path):
        if fields[0] == "intent":
            kept, undone = ([(key, event_id) for key, event_id in events] for events in fields[2:4])
            pending[fields[1]] = LoggedTransaction(number=fields[1], kept=kept, undone=undone)
        else:
            pending[fields[1]].outcome, pending[fields[1]].ended_at = fields[0], fields[2]
    yield from pending.values()


def _lines(path: Path) -> Iterator[list[Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


class CommittedCount:
    """Counts what the writers have committed so far; reads only what is new."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self.events = 0
        self.rolled_back = 0

    def update(self) -> None:
        """Read the outcomes that were appended since the last call."""
        for path in self._folder.glob("writer-*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read[path] = self._read.get(path, 0) + len(line)
                    if not line.startswith(b'["intent"'):
                        outcome, _, _, events = json.loads(line)
                        self.events += events
                        self.rolled_back += outcome == "rolled back"
