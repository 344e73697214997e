"""A relay's sign of life: a lock on a file of its own beside the database, which the kernel releases when its process
dies, however it dies.

Locks belong to open files, not to processes: several relays of one process do not confuse each other. Where the system
has no such locks, a relay holds none, and others wait for its lease.
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

# Capitals are left out: some file systems take them for small letters.
_PLAIN = re.compile(r"[a-z0-9_-]{1,64}", re.ASCII)


class RelayLocks:
    """The locks of the relays on one database. Used on the store's thread only."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._held: dict[str, int] = {}

    def hold(self, relay: str) -> str | None:
        """Hold the relay's lock from now on; None: it cannot be had."""
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
        # Somebody may have removed the file before it was locked: the next renewal makes another one.
        return TOKEN if self._is_the_file(file, relay) else None

    def ended(self, relay: str) -> bool:
        """Whether nobody holds the relay's lock any more."""
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
        """Remove the file of a relay that is gone."""
        with suppress(OSError):
            self._path(relay).unlink()

    def release(self, relay: str) -> None:
        """Hold the relay's lock no more."""
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
    """What a relay's id becomes in a file name: an id that is not plain, its digest, with a dot that plain ids lack."""
    text = str(relay)  # whoever writes rows may have written bytes
    return text if _PLAIN.fullmatch(text) else f".{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()}"
