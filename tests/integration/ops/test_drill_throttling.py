"""The writers of a drill pause while consumers are behind, and only then."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import cast

import pytest

from pillarbox.ops.drill import sampling
from pillarbox.ops.drill.database import DrillTables
from pillarbox.ops.drill.faults import Nemesis
from pillarbox.ops.drill.fleet import Fleet
from pillarbox.ops.drill.hooks import OutageHooks
from pillarbox.ops.drill.ledger import HOLDS, TransactionLog
from pillarbox.ops.drill.sampling import MOST_UNHANDLED, DrillSampler, DrillSnapshot
from pillarbox.ops.drill.target import DrillJob, DrillTarget, SettingsSource
from pillarbox.plugins import DrillQueue
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.stores.sqlite.store import path_of

NAME = "drill_test"
SNAPSHOTS = 4
NO_HOOKS = OutageHooks(what="database", cut="", restore="")


class Load:
    """Between two snapshots, writers commit more events than may be unhandled, and consumers handle some of them."""

    def __init__(self, folder: Path, database: Path, *, share: float) -> None:
        self.folder = folder
        self.database = database
        self.share = share
        self.effects = ""
        self.log = TransactionLog(folder, "writer-0")
        self.paused: list[bool] = []
        self.done = asyncio.Event()

    def proceed(self, snapshot: DrillSnapshot | None = None) -> None:
        if snapshot is not None:
            self.paused.append((self.folder / HOLDS[1]).exists())
        if len(self.paused) == SNAPSHOTS:
            self.done.set()
            return
        events = MOST_UNHANDLED + 1
        self.log.end(str(len(self.paused)), "committed", events)
        handled = int(events * self.share)
        with closing(sqlite3.connect(self.database)) as connection, connection:
            connection.executemany(
                f"INSERT INTO {self.effects} (event_id) VALUES (?)", [(str(one),) for one in range(handled)]
            )


@pytest.mark.parametrize(("share", "paused"), [(1.0, False), (0.0, True)])
async def test_writers_pause_only_while_consumers_are_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float, paused: bool
) -> None:
    monkeypatch.setattr(sampling, "INTERVAL", 0)
    source = SettingsSource(flags={"store.url": f"sqlite:///{tmp_path / 'shop.db'}"})
    fleet = Fleet(job=DrillJob(source=source, transport="", name=NAME, folder=tmp_path, role="writer-0"))
    target = DrillTarget.of(source.load(), name=NAME)
    database = path_of(target.settings.store.url)
    tables, store = DrillTables(target), SqliteStore(database)
    await store.schema.apply()
    await tables.create()
    load = Load(tmp_path, database, share=share)
    nemesis = Nemesis(
        fleet=fleet,
        store=store,
        tables=tables,
        queue=cast("DrillQueue", object()),
        database_hooks=NO_HOOKS,
        broker_hooks=NO_HOOKS,
    )
    with closing(sqlite3.connect(database)) as connection:
        [(load.effects,)] = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE '%drill_effect'")
    load.proceed()
    sampler = DrillSampler(fleet=fleet, nemesis=nemesis, seconds=60, most_pending=1, show=load.proceed)
    running = {asyncio.create_task(sampler.run()), asyncio.create_task(load.done.wait())}
    ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    for task in running - ended:
        task.cancel()
    load.log.close()
    await store.aclose()
    assert load.paused == [paused] * SNAPSHOTS
