"""The application of the tests with processes; it runs in its own folder."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from pillarbox import Consumer, FixedDelay
from pillarbox.inbox import ConsumedEvent
from pillarbox.transports.rabbitmq import RabbitMQSource
from tests.servers.waiting import wait_until

HERE = Path.cwd()


def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def crash_once(point: str) -> None:
    """Kill this process if a file of that name exists, and remove the file."""
    if (HERE / point).exists():
        (HERE / point).unlink()
        crash()


@contextmanager
def transaction() -> Iterator[Any]:
    with psycopg.connect(os.environ["DATABASE"]) as connection:
        yield connection
    crash_once("after-commit")


source = RabbitMQSource(os.environ["BROKER"], queue=os.environ["QUEUE"], retry_delays=["50ms", "100ms"])
consumer = Consumer(source, name="billing", transaction=transaction, retry=FixedDelay(delay="50ms", max_attempts=3))


@consumer.on("order.placed")
def bill(connection: Any, event: ConsumedEvent) -> None:
    connection.execute("INSERT INTO effect VALUES (%s)", [event.event_id])
    crash_once("before-commit")
    if event.event_id == "poison":
        with (HERE / "killed").open("a") as notes:
            notes.write("x")
        crash()
    if event.event_id == "slow":
        (HERE / "begun").touch()
        wait_until((HERE / "go-on").exists, bound=300, what="the test continues")
