"""Tells running relays from crashed ones: each relay locks its own file next to the database, and the kernel
releases the lock when the process ends, for whatever reason.

Locks belong to open files, not to processes, so several relays of one process have separate locks. On systems without
such locks other relays wait for the lease.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

if sys.platform == "win32":
    fcntl: Any = None
else:
    import fcntl

TOKEN = "lock"  # noqa: S105 - no secret: it says that there is a lock

# Without capitals: some file systems do not distinguish them.
_PLAIN = re.compile(r"[a-z0-9_-]{1,64}", re.ASCII)


class RelayLocks:
    """The locks of the relays on one database. Used on the store's thread only."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._held: dict[str, int] = {}

    def hold(self, relay: str) -> str | None:
        """Lock the file of the relay; None: it cannot be locked."""
        if sys.platform == "win32":
            return None
        if relay in self._held and self._is_the_file(self._held[relay], relay):
            return TOKEN
        self.release(relay)
        try:
            file = os.open(self._path(relay), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o660)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return None
        self._held[relay] = file
        # Another process may have removed the file before it was locked: the next renewal creates another one.
        return TOKEN if self._is_the_file(file, relay) else None

    def ended(self, relay: str) -> bool:
        """Whether the lock of the relay is free: the relay has ended."""
        if sys.platform == "win32":
            return False
        try:
            file = os.open(self._path(relay), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(file)
        return True

    def remove(self, relay: str) -> None:
        """Remove the file of a relay that has ended."""
        with suppress(OSError):
            self._path(relay).unlink()

    def release(self, relay: str) -> None:
        """Release the lock of the relay."""
        if (file := self._held.pop(relay, None)) is not None:
            os.close(file)

    def close(self) -> None:
        """Release every lock and remove its file."""
        for relay in list(self._held):
            self.remove(relay)
            self.release(relay)

    def _path(self, relay: str) -> Path:
        return self._database.with_name(f"{self._database.name}-relay-{_suffix(relay)}")

    def _is_the_file(self, file: int, relay: str) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path(relay).stat())
        except OSError:
            return False


def _suffix(relay: str) -> str:
    """The id of a relay as part of a file name: a plain id itself, otherwise a dot and its digest."""
    text = str(relay)  # a row that was written by hand may have bytes
    return text if _PLAIN.fullmatch(text) else f".{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()}"
