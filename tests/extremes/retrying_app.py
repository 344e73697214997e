"""A consumer that fails the first attempt of events that ask for it; `pillarbox consume` runs it in a test's folder."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from pillarbox import Consumer, FixedDelay
from pillarbox.inbox import ConsumedEvent
from pillarbox.schemes import open_source

_failed: dict[str, float] = {}


@contextmanager
def transaction() -> Iterator[Any]:
    with psycopg.connect(os.environ["DATABASE"]) as connection:
        yield connection


source = open_source(os.environ["BROKER"], os.environ["NAME"], group="retrying", **json.loads(os.environ["OPTIONS"]))
consumer = Consumer(
    source, name="retrying", transaction=transaction, retry=FixedDelay(delay=os.environ["DELAY"], max_attempts=2)
)


@consumer.on(os.environ["NAME"])
def handle(connection: Any, event: ConsumedEvent) -> None:
    if event.payload["fails"] and event.attempt == 1:
        _failed[event.event_id] = time.monotonic()
        with Path("failures.txt").open("a") as failures:
            failures.write(f"{event.event_id}\n")
        raise ValueError("not now")
    waited = time.monotonic() - _failed.get(event.event_id, time.monotonic())
    connection.execute(
        "INSERT INTO effect VALUES (%s, %s, %s - extract(epoch FROM clock_timestamp()))",
        [event.event_id, waited, time.time()],
    )
