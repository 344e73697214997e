"""A store on its own file, a plain connection, and SQLite's shell."""

import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner

Shell = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
async def store(sqlite_template: Path, path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(shutil.copy(sqlite_template, path))
    yield store
    await store.aclose()


@pytest.fixture
async def owner(store: SqliteStore) -> Owner:
    return await Owner.of(store)


@pytest.fixture
def sql(store: SqliteStore, path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection in autocommit mode, like that of a producer or an operator."""
    connection = sqlite3.connect(path, isolation_level=None)
    yield connection
    connection.close()


@pytest.fixture
def shell(path: Path) -> Shell:
    """SQLite's own shell on the file."""

    def run(script: str, *, check: bool = True) -> "subprocess.CompletedProcess[str]":
        command = ["sqlite3", "-bail", str(path)]
        return subprocess.run(command, input=script, text=True, capture_output=True, check=check, timeout=120)

    return run
