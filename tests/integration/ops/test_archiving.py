"""Rows are in the archive on disk before they are deleted."""

import gzip
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pillarbox.admin.archive import Archive, Table
from pillarbox.admin.listing import EventDetail, EventFilter
from pillarbox.core.errors import CommandError, ConfigurationError, StoreUnavailableError
from pillarbox.core.event import Event
from pillarbox.core.outcome import DELIVERED
from pillarbox.ops.archive import BATCH, ArchiveFile, archive, erase_lines
from pillarbox.record import Outbox
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.conformance.lane_owner import Owner

COUNT = BATCH + 10


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "old.ndjson.gz"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """More delivered events than one batch."""
    store = SqliteStore(tmp_path / "shop.db", busy_timeout="50ms")
    await store.schema.apply()
    with closing(sqlite3.connect(tmp_path / "shop.db")) as file, file:
        Outbox().record(file, *(Event("t", {}, event_id=f"e{number}") for number in range(COUNT)))
    owner = await Owner.of(store)
    await owner.settle(DELIVERED, *await owner.ready(limit=2 * COUNT, quota=2 * COUNT))
    yield store
    await store.aclose()


def archived(path: Path) -> list[str]:
    return [json.loads(line)["event_id"] for line in gzip.decompress(path.read_bytes()).splitlines()]


async def left(store: SqliteStore) -> set[str]:
    return {event.event_id for event in (await store.admin.events.list(EventFilter(), limit=2 * COUNT)).events}


class Witness:
    """Reads the file before rows are deleted."""

    def __init__(self, real: Archive, path: Path) -> None:
        self.count_expired = real.count_expired
        self.read = real.read
        self._drop = real.drop
        self._path = path
        self.batches: list[int] = []

    async def drop(self, table: Table, rows: Sequence[EventDetail]) -> int:
        assert {row.event_id for row in rows} <= set(archived(self._path))
        self.batches.append(len(rows))
        return await self._drop(table, rows)


async def test_each_batch_is_in_the_file_before_it_is_deleted(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = Witness(store.admin.archive, path)
    monkeypatch.setattr(store.admin, "archive", witness)
    with ArchiveFile.create(path) as file:
        assert await archive(store, "history", file, older=0) == COUNT
    assert witness.batches == [BATCH, COUNT - BATCH]
    assert archived(path) == [f"e{number}" for number in range(COUNT)]
    assert await left(store) == set()


async def test_rows_that_could_not_be_deleted_are_in_both(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "shop.db", isolation_level=None)) as writer,
        ArchiveFile.create(path) as file,
    ):
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError):
            await archive(store, "history", file, older=0)
    everything = {f"e{number}" for number in range(COUNT)}
    assert await left(store) == everything
    assert archived(path) == [f"e{number}" for number in range(BATCH)]
    with ArchiveFile.create(tmp_path / "again.ndjson.gz") as file:
        await archive(store, "history", file, older=0)
    assert set(archived(tmp_path / "again.ndjson.gz")) == everything


@pytest.fixture
def full_disk() -> Iterator[ArchiveFile]:
    with Path("/dev/full").open("wb", buffering=0) as file:
        yield ArchiveFile(Path("/dev/full"), file, compressed=False)


async def test_a_full_disk_keeps_the_rows(store: SqliteStore, full_disk: ArchiveFile) -> None:
    with pytest.raises(CommandError, match="No space left"):
        await archive(store, "history", full_disk, older=0)
    assert len(await left(store)) == COUNT


def test_an_archive_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with ArchiveFile.create(tmp_path / "archive.ndjson.gz"):
            pass
    finally:
        os.umask(before)
    assert (tmp_path / "archive.ndjson.gz").stat().st_mode & 0o777 == 0o600


def erasable(folder: Path) -> Path:
    """An archive in a folder of its own, with events of two customers."""
    folder.mkdir()
    path = folder / "old.ndjson.gz"
    lines = (json.dumps({"aggregate_type": "CUSTOMER", "aggregate_id": str(one % 2)}) for one in range(COUNT))
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def test_a_partial_copy_is_deleted_if_the_archive_is_cut_off(tmp_path: Path) -> None:
    path = erasable(tmp_path / "cut")
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ConfigurationError, match="is cut off"):
        erase_lines(path, "CUSTOMER", "1")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_a_partial_copy_is_deleted_if_the_command_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    path = erasable(tmp_path / "interrupted")
    before = path.read_bytes()

    def interrupt(number: int) -> None:
        raise interruption

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(interruption):
        erase_lines(path, "CUSTOMER", "1")
    assert list(path.parent.iterdir()) == [path]
    assert path.read_bytes() == before
