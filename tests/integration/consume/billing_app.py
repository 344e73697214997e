"""The application of the tests with processes; it runs in its own folder, on a broker or in a relay."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from pillarbox import Consumer, FixedDelay, Handlers, open_source
from pillarbox.inbox import ConsumedEvent
from tests.extremes.databases import connected
from tests.servers.waiting import wait_until

HERE = Path.cwd()
DATABASE = os.environ.get("DATABASE") or os.environ["PILLARBOX_STORE"].partition("?")[0]


def crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def crash_once(point: str) -> None:
    """Kill this process if a file of that name exists, and remove the file."""
    if (HERE / point).exists():
        (HERE / point).unlink()
        crash()


@contextmanager
def transaction() -> Iterator[Any]:
    with connected(DATABASE) as connection:
        yield connection
        connection.commit()
    crash_once("after-commit")


def bill(connection: Any, event: ConsumedEvent) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.execute(f"INSERT INTO effect (event_id) VALUES ('{event.event_id}')")
    crash_once("before-commit")
    if event.event_id == "poison":
        with (HERE / "killed").open("a") as notes:
            notes.write("x")
        crash()
    if event.event_id == "slow":
        (HERE / "begun").touch()
        wait_until((HERE / "go-on").exists, bound=300, what="the test continues")


def on(source: Any = None) -> Consumer:
    made = Consumer(source, name="billing", transaction=transaction, retry=FixedDelay(delay="50ms", max_attempts=3))
    made.on("*")(bill)
    return made


if "BROKER" in os.environ:
    options = json.loads(os.environ.get("OPTIONS") or '{"retry_delays": ["50ms", "100ms"]}')
    consumer = on(open_source(os.environ["BROKER"], os.environ["QUEUE"], group="billing", **options))
else:
    handlers = Handlers()
    handlers.add(on())
