"""Where the servers' binaries are, and which Debian packages bring them.

`python -m tests.servers.debian` installs what is missing when root runs it; for other users it prints in one
line what to install. Either way it ends well: what a missing server means is for the tests (`availability`).
"""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from pillarbox.testing.servers.binaries import EPMD, INITDB, POSTGRES, RABBITMQ_SERVER, SERVERS, Binary, MissingServer

__all__ = ["EPMD", "INITDB", "POSTGRES", "RABBITMQ_SERVER", "SERVERS", "Binary", "MissingServer"]

_POLICY = Path("/usr/sbin/policy-rc.d")

# Beside the server: pg_dump refuses a server that is newer than itself.
PG_DUMP = Binary(name="pg_dump", package="postgresql-client", elsewhere="/usr/lib/postgresql:*/bin/")
PG_BASEBACKUP = Binary(name="pg_basebackup", package="postgresql-client", elsewhere="/usr/lib/postgresql:*/bin/")
PG_RESTORE = Binary(name="pg_restore", package="postgresql-client", elsewhere="/usr/lib/postgresql:*/bin/")
PSQL = Binary(name="psql", package="postgresql-client")
RABBITMQCTL = Binary(name="rabbitmqctl", package="rabbitmq-server", elsewhere="/usr/lib/rabbitmq/bin:", on_path=False)
ERL_CALL = Binary(name="erl_call", package="rabbitmq-server")
MARIADBD = Binary(name="mariadbd", package="mariadb-server", elsewhere="/usr/sbin:")
MARIADB_INSTALL_DB = Binary(name="mariadb-install-db", package="mariadb-server")
# To build mysqlclient, a driver without a wheel.
MARIADB_CONFIG = Binary(name="mariadb_config", package="libmariadb-dev")
COMPILER = Binary(name="cc", package="build-essential")
PKG_CONFIG = Binary(name="pkg-config", package="pkg-config")
NATS_SERVER = Binary(name="nats-server", package="nats-server", elsewhere="/usr/sbin:")
REDIS_SERVER = Binary(name="redis-server", package="redis-server")
PGBOUNCER = Binary(name="pgbouncer", package="pgbouncer", elsewhere="/usr/sbin:")
SQLITE = Binary(name="sqlite3", package="sqlite3")
OPENSSL = Binary(name="openssl", package="openssl")
CHROMIUM = Binary(name="chromium", package="chromium")
PROMTOOL = Binary(name="promtool", package="prometheus")
# The pages of the documentation are typed into a shell, and they fetch with curl.
CURL = Binary(name="curl", package="curl")
# A test reads the process list as any user would.
PS = Binary(name="ps", package="procps")
# Namespaces of the network, which a test makes and removes.
IP = Binary(name="ip", package="iproute2", elsewhere="/usr/sbin:")
# Producers and consumers in other languages: the interpreter or compiler, and Debian's libraries for Go.
NODE = Binary(name="node", package="nodejs")
NPM = Binary(name="npm", package="npm")
GO = Binary(name="go", package="golang-go")
GO_AMQP = Binary(
    name="amqp091-go",
    package="golang-github-rabbitmq-amqp091-go-dev",
    elsewhere="/usr/share/gocode/src/github.com/rabbitmq:",
    on_path=False,
)
GO_PQ = Binary(
    name="pq",
    package="golang-github-lib-pq-dev",
    elsewhere="/usr/share/gocode/src/github.com/lib:",
    on_path=False,
)
# Verifies the units of deploy/systemd.
SYSTEMD_ANALYZE = Binary(name="systemd-analyze", package="systemd")
# A library that the browser's driver is linked against.
LIBATOMIC = Binary(name="libatomic.so.1", package="libatomic1", elsewhere="/usr/lib:*/", on_path=False)

ALL = (
    POSTGRES,
    INITDB,
    PG_DUMP,
    PG_BASEBACKUP,
    PG_RESTORE,
    PSQL,
    RABBITMQ_SERVER,
    RABBITMQCTL,
    EPMD,
    ERL_CALL,
    MARIADBD,
    MARIADB_INSTALL_DB,
    MARIADB_CONFIG,
    COMPILER,
    PKG_CONFIG,
    NATS_SERVER,
    REDIS_SERVER,
    PGBOUNCER,
    SQLITE,
    OPENSSL,
    CHROMIUM,
    PROMTOOL,
    CURL,
    PS,
    IP,
    NODE,
    NPM,
    GO,
    GO_AMQP,
    GO_PQ,
    SYSTEMD_ANALYZE,
    LIBATOMIC,
)


def missing_packages(wanted: Sequence[Binary] = ALL) -> list[str]:
    return sorted({binary.package for binary in wanted if binary.find() is None})


def main(wanted: Sequence[Binary] = ALL) -> int:
    packages = missing_packages(wanted)
    if not packages:
        return 0
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        print(f"Some tests need servers that are not here: sudo apt-get install {' '.join(packages)}")
        return 0
    print(f"Installing for the tests: {' '.join(packages)}", flush=True)
    with _services_kept_from_starting():
        _apt_get("update")
        _apt_get("install", "--no-install-recommends", *packages)
    still = missing_packages(wanted)
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


if __name__ == "__main__":
    raise SystemExit(main())
