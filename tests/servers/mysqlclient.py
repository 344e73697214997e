"""mysqlclient, built from its source against Debian's library of MariaDB: there is no wheel of it for Linux.

It is kept in the virtual environment, apart from its packages, and built anew when its lock changes.
"""

import fcntl
import hashlib
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tests.servers import debian

_LOCK = Path(__file__).parents[2] / "requirements" / "mysqlclient.txt"
_FOLDER = Path(sys.prefix) / "mysqlclient"


def mysqlclient() -> ModuleType:
    """The driver. Raises MissingServer if this machine cannot build it."""
    if str(_FOLDER) not in sys.path:
        _build()
        sys.path.append(str(_FOLDER))
    import_module("MySQLdb.cursors")
    return import_module("MySQLdb")


def _build() -> None:
    for binary in (debian.MARIADB_CONFIG, debian.COMPILER, debian.PKG_CONFIG):
        binary.path()
    digest = hashlib.sha256(_LOCK.read_bytes()).hexdigest()
    stamp = _FOLDER.with_suffix(".sha256")
    with _FOLDER.with_suffix(".lock").open("w") as lock:  # tiers run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text() == digest:
            return
        options = ("--no-deps", "--no-build-isolation", "--require-hashes", "--upgrade", "--target", str(_FOLDER))
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options, "-r", _LOCK],
            check=True,
        )
        stamp.write_text(digest)
