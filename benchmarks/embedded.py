"""A backlog in SQLite, drained by a relay into handlers of its own process."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from contextlib import aclosing, closing
from dataclasses import dataclass

from benchmarks.draining import RELAY, Lost
from benchmarks.events import EVENT_TYPE, KEYS, payload
from benchmarks.processes import workers
from benchmarks.results import Sample
from pillarbox.stores.sqlite import SqliteStore

INSERT = "INSERT INTO outbox_message (event_type, payload, ordering_key) VALUES (?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """How many events, and whether delivered ones are kept."""

    events: int
    history: bool = False


def drain(way: Embedded) -> Sample:
    """Take one sample. Raises Lost unless the handler received every event."""
    events = way.events
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/bench.db"
        asyncio.run(_apply_schema(url))
        with closing(sqlite3.connect(f"{folder}/bench.db")) as connection, connection:
            rows = ((EVENT_TYPE, payload(number), f"ORDER:{number * 7919 % KEYS}") for number in range(events))
            connection.executemany(INSERT, rows)
        job = {"store": url, "history": way.history, "profile": False, "until_empty": True}
        with workers(RELAY, [job]) as [relay]:
            relay.go()
            began = time.monotonic()
            report = relay.report()
    if report["met"] != events:
        raise Lost(f"{events - report['met']} of {events} events were not handled")
    return Sample(
        events=events,
        seconds=report["finished"] - began,
        python=report["cpu"] / events * 1e6,
        postgres=0.0,
        rabbitmq=0.0,
        memory=report["memory"],
        repeats=report["repeats"],
    )


async def _apply_schema(url: str) -> None:
    async with aclosing(SqliteStore(url)) as store:
        await store.schema.apply()
