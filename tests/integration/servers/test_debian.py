"""A missing server: an error that names its package, a skip locally, a failure in CI."""

import os
import subprocess
import sys

import pytest

from tests.servers.debian import ALL, Binary, MissingServer

NOWHERE = Binary(name="no-such-server", package="no-such-package")


def test_a_missing_binary_names_its_package() -> None:
    with pytest.raises(MissingServer, match=r"no-such-server is not installed \(Debian package no-such-package\)"):
        NOWHERE.path()


def test_every_binary_has_a_package() -> None:
    assert {binary.package for binary in ALL} == {
        "build-essential",
        "chromium",
        "curl",
        "golang-github-lib-pq-dev",
        "golang-github-rabbitmq-amqp091-go-dev",
        "golang-go",
        "iproute2",
        "libatomic1",
        "libmariadb-dev",
        "mariadb-server",
        "nats-server",
        "nodejs",
        "npm",
        "openssl",
        "pgbouncer",
        "pkg-config",
        "postgresql",
        "postgresql-client",
        "procps",
        "prometheus",
        "rabbitmq-server",
        "redis-server",
        "sqlite3",
        "systemd",
    }


@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 failed"), ("", "1 skipped")])
def test_a_missing_server_is_a_skip_on_a_laptop_and_a_failure_in_ci(
    ci: str, outcome: str, pytestconfig: pytest.Config
) -> None:
    case = pytestconfig.rootpath / "tests/integration/servers/missing_case.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(case)],
        cwd=pytestconfig.rootpath,
        env=os.environ | {"CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout, done.stdout
    assert (done.returncode == 0) == (ci == "")
