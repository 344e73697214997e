"""An archive: lines of JSON in a file that is on the disk before anything that is in it leaves the database.

Whatever happens in between, a row is in the file or in the database, or in both; never in neither.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pillarbox.admin.admin import AdminStore
from pillarbox.admin.archive import Table
from pillarbox.admin.listing import EventDetail
from pillarbox.core.errors import ConfigurationError, PillarboxError
from pillarbox.core.text import safe_json
from pillarbox.ops import exports

BITE = 1000
"""Rows per bite: written, on the disk, dropped."""


class ArchiveFailed(PillarboxError):
    """The file could not be written; what was not on the disk was not dropped."""


class ArchiveFile:
    """A new file; its name says whether it is compressed. Each bite is a gzip member of its own, whole on the disk."""

    def __init__(self, path: Path, file: BinaryIO, *, compressed: bool) -> None:
        self._path, self._file = path, file
        self._compressed = compressed

    @classmethod
    @contextmanager
    def create(cls, path: Path) -> Iterator[ArchiveFile]:
        """Raises ConfigurationError if there is such a file already, or cannot be."""
        try:
            # For its owner alone: it holds payloads.
            file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")
        except FileExistsError:
            raise ConfigurationError(f"{path} is there already: name a new file, nothing is written over") from None
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be made: {error.strerror}") from None
        with file:
            _sync_folder(path)
            yield cls(path, file, compressed=path.suffix == ".gz")

    def write(self, rows: Iterable[EventDetail]) -> None:
        """Write rows and wait until they are on the disk. Raises ArchiveFailed."""
        text = "".join(safe_json(exports.event_detail(row)) + "\n" for row in rows).encode()
        try:
            self._file.write(gzip.compress(text, mtime=0) if self._compressed else text)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise ArchiveFailed(
                f"{self._path} could not be written ({error.strerror}): what is not safely in it is still in the "
                "database; make room, and go on with a new file"
            ) from None


async def archive(store: AdminStore, table: Table, file: ArchiveFile | None, *, older: float) -> int:
    """Move what is older than that many seconds into the file, in bites; returns how many rows left the database."""
    gone, after = 0, None
    while rows := await store.admin.archive.read(table, older=older, limit=BITE, after=after):
        if file is not None:
            file.write(rows)
        gone += await store.admin.archive.drop(table, rows)
        after = rows[-1]
    return gone


def _sync_folder(path: Path) -> None:
    """A file is safe only when its name is, too."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
