"""Lets a test observe every outbox of this process. Without a listener, `record` only looks at an empty list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pillarbox.core.rows import EventRow
from pillarbox.table_names import TableNames


class Recording(NamedTuple):
    """The rows of one call of `record`, inside a transaction that may still be rolled back."""

    connection: object
    tables: TableNames
    rows: Sequence[EventRow]


RecordListener = Callable[[Recording], None]

listeners: list[RecordListener] = []


@contextmanager
def listening(listener: RecordListener) -> Iterator[None]:
    """Call the listener after every successful `record` and `arecord` of this process, until the block ends."""
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)
