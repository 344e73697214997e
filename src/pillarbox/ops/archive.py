"""Archive rows as lines of JSON in a file before they are deleted from the database, and erase an aggregate from it.

Invariant: rows are on disk (fsync) before they are deleted. After a crash a row is in the file, in the database, or in
both.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.archive import Table
from pillarbox.admin.listing import EventDetail
from pillarbox.core.errors import CommandError, ConfigurationError
from pillarbox.core.text import safe_json
from pillarbox.ops import exports

BATCH = 1000
"""Rows that are written, synced and deleted together."""


class ArchiveFile:
    """A new file, compressed if its name ends with .gz. Each batch is a complete gzip member."""

    def __init__(self, path: Path, file: BinaryIO, *, compressed: bool) -> None:
        self._path, self._file = path, file
        self._compressed = compressed

    @classmethod
    @contextmanager
    def create(cls, path: Path) -> Iterator[ArchiveFile]:
        """Create the file. Raises ConfigurationError if it exists or cannot be created."""
        try:
            # Only the owner may read it, because it contains payloads.
            file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
        except FileExistsError:
            raise ConfigurationError(f"{path} already exists and is not overwritten: name a new file") from None
        except OSError as error:
            raise ConfigurationError(
                f"{path} cannot be created: {error.strerror}; check the folder and its permissions"
            ) from None
        with file:
            _sync_folder(path)
            yield cls(path, file, compressed=path.suffix == ".gz")

    def write(self, rows: Iterable[EventDetail]) -> None:
        """Write rows and sync them to disk. Raises CommandError: rows that are not on disk were not
        deleted."""
        text = "".join(safe_json(exports.event_detail(row)) + "\n" for row in rows).encode()
        try:
            self._file.write(gzip.compress(text, mtime=0) if self._compressed else text)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise CommandError(
                f"{self._path} could not be written ({error.strerror}): rows that are not in it are still in the "
                "database; free disk space, then continue with a new file"
            ) from None


async def archive(store: AdminStore, table: Table, file: ArchiveFile | None, *, older: float) -> int:
    """Move rows older than `older` seconds to the file, in batches; returns the number of deleted rows."""
    deleted, after = 0, None
    while rows := await store.admin.archive.read(table, older=older, limit=BATCH, after=after):
        if file is not None:
            file.write(rows)
        deleted += await store.admin.archive.drop(table, rows)
        after = rows[-1]
    return deleted


@dataclass(frozen=True, slots=True)
class ArchivedEvents:
    """The events of one aggregate in an archive."""

    count: int
    unreadable: Sequence[int]
    """Numbers of lines that are neither an event nor blank, such as the last one after a crash: their aggregate is not
    known."""


def events_of(path: Path, aggregate_type: str, aggregate_id: str) -> ArchivedEvents:
    """Count the events of an aggregate in an archive. Raises ConfigurationError if it cannot be read."""
    count, unreadable = 0, list[int]()
    for number, line in enumerate(_lines(path), start=1):
        match _is_of(line, aggregate_type, aggregate_id):
            case None:
                unreadable.append(number)
            case found:
                count += found
    return ArchivedEvents(count, unreadable)


def erase_lines(path: Path, aggregate_type: str, aggregate_id: str) -> None:
    """Replace an archive by a file without the events of an aggregate, once that file is on disk; other lines stay.

    Raises ConfigurationError, CommandError.
    """
    path = path.resolve()  # a symbolic link stays one
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    try:
        _write_without(new, path, aggregate_type, aggregate_id)
        os.replace(new, path)
    except BaseException as error:
        # A partial copy has personal data, and no later command would delete it.
        new.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise CommandError(
            f"{path} could not be rewritten ({error.strerror}): it is unchanged; free disk space, then erase again"
        ) from None
    _sync_folder(path)


def _write_without(new: Path, path: Path, aggregate_type: str, aggregate_id: str) -> None:
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if path.suffix == ".gz" else nullcontext(file) as out:
            for line in _lines(path):
                if not _is_of(line, aggregate_type, aggregate_id):
                    out.write(line)
        file.flush()
        os.fsync(file.fileno())


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            yield from file
    except EOFError:
        raise ConfigurationError(
            f"{path} is cut off: write what is complete into a new archive with `gzip -dc`, and name that one"
        ) from None
    except (OSError, zlib.error) as error:
        raise ConfigurationError(f"{path} cannot be read as an archive: {error}; check the file") from None


def _is_of(line: bytes, aggregate_type: str, aggregate_id: str) -> bool | None:
    """Whether a line is an event of this aggregate; None: it is neither an event nor blank."""
    if not line.strip():
        return False
    try:
        event: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict):
        return None
    about = cast("dict[str, Any]", event)
    return (about.get("aggregate_type"), about.get("aggregate_id")) == (aggregate_type, aggregate_id)


def _sync_folder(path: Path) -> None:
    """Sync the folder, so that the name of the file survives a crash, too."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
