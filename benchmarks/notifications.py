"""The load test of the notification producer: events through one relay process to the queues of four audiences.

    python -m benchmarks.notifications [events]

Starts a private PostgreSQL (fsync on) and a private RabbitMQ, and a relay with the shipped settings of
`apps/notifications`, ledger on. A tenth of the events goes first, then all of them, each committed at once while the
relay sleeps; a backlog ten times as long must not need more memory. What was published is read from the queues: every
event is in the queue of its audience, once.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from apps.notifications.database import migrate
from apps.notifications.domain import Audience
from pillarbox import Event, Outbox
from tests.apps.notifications.app_database import AppDatabase
from tests.apps.notifications.processes import SETTINGS, Process
from tests.integration.rabbitmq.consumer import take_all
from tests.servers.postgres import PostgresServer
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

AGGREGATES = 1000
"""Of each audience."""
BATCH = 1000
BOUND = 600.0
WAITING = "SELECT count(*) FROM (SELECT 1 FROM outbox_message LIMIT 1) AS waiting"
TICKS = os.sysconf("SC_CLK_TCK")


class Result(NamedTuple):
    """The result of one run."""

    events: int
    seconds: float
    processor: float
    """Seconds of the relay's."""
    memory: float
    """The most that the relay ever had, in MiB."""
    duplicates: int


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 1024


def fill(app: AppDatabase, events: int) -> None:
    """Events for all audiences in turn, in one transaction: the relay sees all of them, or none."""
    audiences = list(Audience)
    payload = {"guest_name": "Ada", "party_size": 2, "note": "x" * 250}
    with app.engine.begin() as connection:
        for first in range(0, events, BATCH):
            Outbox().record(
                connection,
                *(
                    Event(
                        "RESERVATION_REQUESTED",
                        payload,
                        aggregate_type=audiences[number % 4],
                        aggregate_id=str(number // 4 % AGGREGATES),
                    )
                    for number in range(first, min(first + BATCH, events))
                ),
            )


def run_relay(pg: PostgresServer, mq: RabbitMQServer, events: int, folder: Path) -> Result:
    pg.create_database("bench")
    url = pg.url("bench")
    migrate(url)
    relay = Process(
        folder,
        "pillarbox",
        *("--config", str(SETTINGS), "relay"),
        PILLARBOX_STORE=url,
        PILLARBOX_TRANSPORT=mq.url(),
        PILLARBOX_RELAY__INITIAL_DELAY="0s",
    )
    try:
        with AppDatabase.of(url) as app:
            wait_until(lambda: app.number("SELECT count(*) FROM outbox_relay") == 1, bound=BOUND, what="it lives")
            began = processor_time(relay.pid)
            fill(app, events)
            wall = time.perf_counter()
            wait_until(lambda: not app.number(WAITING), bound=BOUND, what="nothing waits any more")
            wall = time.perf_counter() - wall
            used, memory = processor_time(relay.pid) - began, peak_memory(relay.pid)
            relay.terminate()
            assert relay.wait() == 0, relay.log_text()
            assert app.number("SELECT count(*) FROM outbox_ledger WHERE status = 'SUCCESS'") == events
        return Result(events, wall, used, memory, duplicates(mq.url(), events))
    finally:
        relay.end()
        pg.drop_database("bench")


def duplicates(url: str, events: int) -> int:
    """How many messages too many are in the queues; they are deleted."""
    found: Counter[str] = Counter()
    for audience in Audience:
        for taken in take_all(url, audience.queue):
            message = json.loads(taken.body)
            assert message["aggregate_type"] == audience
            found[message["event_id"]] += 1
    assert len(found) == events, f"{events - len(found)} events are missing"
    return found.total() - len(found)


def main() -> None:
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with PostgresServer(durable=True) as pg, RabbitMQServer() as mq, TemporaryDirectory() as folder:
        runs = [run_relay(pg, mq, count, Path(folder)) for count in (events // 10, events)]
    print("one relay with the settings of apps/notifications (batches of 100, ledger), fsync on, quorum queues")
    heads = {
        "events": 8,
        "seconds": 10,
        "events/s": 10,
        "processor": 11,
        "µs/event": 10,
        "peak MiB": 10,
        "duplicates": 12,
    }
    print("".join(f"{head:>{width}}" for head, width in heads.items()))
    for run in runs:
        rate, each, share = run.events / run.seconds, run.processor / run.events * 1e6, run.processor / run.seconds
        print(
            f"{run.events:>8,}{run.seconds:>10.2f}{rate:>10,.0f}{share:>11.0%}{each:>10.0f}"
            f"{run.memory:>10.1f}{run.duplicates:>12}"
        )
    print(f"ten times the backlog: {runs[1].memory / runs[0].memory:.2f} times the memory")
    if any(run.duplicates for run in runs):
        sys.exit("messages were published twice on a healthy path")


if __name__ == "__main__":
    main()
