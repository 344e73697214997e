"""A test run that leaves a server running fails and names it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.ports import is_open
from tests.servers.postgres import PostgresServer

CASE = Path(__file__).with_name("leaking_case.py")


def test_a_leaked_server_fails_the_run(postgres_server: PostgresServer, pytestconfig: pytest.Config) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(CASE)],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    pid = _found(r"LEAK: PostgreSQL still runs with pid (\d+)", done.stdout)
    port = _found(r"LEAK: PostgreSQL still listens on port (\d+)", done.stdout)
    folder = _found(r"LEAK: folder (\S+) was not removed", done.stdout)
    assert not Path("/proc", pid).exists()
    assert not is_open(int(port))
    assert not Path(folder).exists()


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match is not None, text
    return match.group(1)
