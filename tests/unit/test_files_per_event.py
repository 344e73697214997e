"""How many files of the package a reader must open to follow one event through a relay: from SQLite to a handler."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from types import FrameType

import pillarbox
from pillarbox import Event, HandlerContext, Handlers, Outbox, ReceivedEvent, Relay
from pillarbox.stores.sqlite import SqliteStore
from pillarbox.testing.waiting import eventually

PACKAGE = Path(pillarbox.__file__).parent
SENDING = {"relay/decide.py", "transports/handlers/calls.py"}
"""What only the tasks enter that send an event and decide about the result."""
CARRYING = SENDING | {"relay/placement.py", "relay/settle.py"}
"""What only the tasks enter that fetch, send or settle an event; others wait, renew leases or count."""


class Profile:
    """The files of the package that each task of this thread enters."""

    def __init__(self) -> None:
        self.entered: defaultdict[object, set[str]] = defaultdict(set)

    def __call__(self, frame: FrameType, kind: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if kind != "call" or not path.is_relative_to(PACKAGE):
            return
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return
        if task is not None:
            self.entered[task].add(path.relative_to(PACKAGE).as_posix())

    def files_of(self, marks: set[str]) -> set[str]:
        """The files of the tasks that entered one of the marks."""
        return {file for files in self.entered.values() if files & marks for file in files}


async def test_delivering_an_event_enters_at_most_20_files(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "shop.db")
    await store.schema.apply()
    outbox, handlers = Outbox(), Handlers()

    @handlers.on("order.placed")
    async def handle(event: ReceivedEvent, context: HandlerContext) -> None: ...

    def record() -> None:
        with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
            outbox.record(connection, Event("order.placed", {}))

    async def settled() -> bool:
        return (await store.statistics.backlog()).messages == 0

    async with Relay(store=store, transports={"handlers": handlers}):
        record()
        await eventually(settled)
        record()
        profile = Profile()
        sys.setprofile(profile)
        try:
            await eventually(settled)
        finally:
            sys.setprofile(None)
    await store.aclose()
    assert 10 < len(profile.files_of(SENDING)) <= 20, sorted(profile.files_of(SENDING))
    # With its fetch and its settlement, which other tasks do for many events at once.
    assert len(profile.files_of(CARRYING)) <= 25, sorted(profile.files_of(CARRYING))
