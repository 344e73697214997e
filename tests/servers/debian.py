"""Where the servers' binaries are, and which Debian packages bring them.

`python -m tests.servers.debian` installs what is missing when root runs it; for other users it prints in one
line what to install. Either way it ends well: what a missing server means is for the tests (`availability`).
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_POLICY = Path("/usr/sbin/policy-rc.d")


class MissingServer(Exception):
    """The machine lacks a binary that a server needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binary:
    """One program, the package that brings it, and where it lies when it is not on PATH."""

    name: str
    package: str
    elsewhere: str | None = None
    on_path: bool = True

    def find(self) -> Path | None:
        if self.elsewhere is not None:
            folder, _, pattern = self.elsewhere.partition(":")
            # The newest of several versions installed side by side.
            places = sorted(Path(folder).glob(f"{pattern}{self.name}"), key=_version)
            if places:
                return places[-1]
        found = shutil.which(self.name) if self.on_path else None
        return None if found is None else Path(found)

    def path(self) -> str:
        """Where it is; MissingServer if it is nowhere."""
        found = self.find()
        if found is None:
            raise MissingServer(f"{self.name} is not installed (Debian package {self.package})")
        return str(found)


POSTGRES = Binary(name="postgres", package="postgresql", elsewhere="/usr/lib/postgresql:*/bin/")
INITDB = Binary(name="initdb", package="postgresql", elsewhere="/usr/lib/postgresql:*/bin/")
# Beside the server: pg_dump refuses a server that is newer than itself.
PG_DUMP = Binary(name="pg_dump", package="postgresql-client", elsewhere="/usr/lib/postgresql:*/bin/")
PSQL = Binary(name="psql", package="postgresql-client")
# The scripts on PATH change to the user rabbitmq; the inner ones run as the calling user.
RABBITMQ_SERVER = Binary(
    name="rabbitmq-server", package="rabbitmq-server", elsewhere="/usr/lib/rabbitmq/bin:", on_path=False
)
RABBITMQCTL = Binary(name="rabbitmqctl", package="rabbitmq-server", elsewhere="/usr/lib/rabbitmq/bin:", on_path=False)
EPMD = Binary(name="epmd", package="rabbitmq-server")
ERL_CALL = Binary(name="erl_call", package="rabbitmq-server")
PGBOUNCER = Binary(name="pgbouncer", package="pgbouncer", elsewhere="/usr/sbin:")
SQLITE = Binary(name="sqlite3", package="sqlite3")
OPENSSL = Binary(name="openssl", package="openssl")
CHROMIUM = Binary(name="chromium", package="chromium")
PROMTOOL = Binary(name="promtool", package="prometheus")
# The pages of the documentation are typed into a shell, and they fetch with curl.
CURL = Binary(name="curl", package="curl")
# A test reads the process list as any user would.
PS = Binary(name="ps", package="procps")
# A library that the browser's driver is linked against.
LIBATOMIC = Binary(name="libatomic.so.1", package="libatomic1", elsewhere="/usr/lib:*/", on_path=False)

ALL = (
    POSTGRES,
    INITDB,
    PG_DUMP,
    PSQL,
    RABBITMQ_SERVER,
    RABBITMQCTL,
    EPMD,
    ERL_CALL,
    PGBOUNCER,
    SQLITE,
    OPENSSL,
    CHROMIUM,
    PROMTOOL,
    CURL,
    PS,
    LIBATOMIC,
)


def missing_packages() -> list[str]:
    return sorted({binary.package for binary in ALL if binary.find() is None})


def main() -> int:
    packages = missing_packages()
    if not packages:
        return 0
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"Some tests need servers that are not here: sudo apt-get install {' '.join(packages)}")
        return 0
    print(f"Installing for the tests: {' '.join(packages)}", flush=True)
    with _services_kept_from_starting():
        _apt_get("update")
        _apt_get("install", "--no-install-recommends", *packages)
    still = missing_packages()
    if still:
        print(f"Still missing after the installation: {' '.join(still)}", file=sys.stderr)
    return 0


@contextlib.contextmanager
def _services_kept_from_starting() -> Iterator[None]:
    """Debian starts a service when it installs one; the tests want the program only."""
    before = _POLICY.read_bytes() if _POLICY.exists() else None
    mode = _POLICY.stat().st_mode if before is not None else 0o755
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        if before is None:
            _POLICY.unlink()
        else:
            _POLICY.write_bytes(before)
            _POLICY.chmod(mode)


def _apt_get(*arguments: str) -> None:
    done = subprocess.run(
        ["apt-get", "--yes", "--quiet=2", *arguments],
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in path.parts if part.isdigit())


if __name__ == "__main__":
    raise SystemExit(main())
