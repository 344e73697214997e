"""`python -m tests.apps.notifications.faults.dying_listener POINT`: the restaurants' listener, which dies once at a
known place of its transaction, as by a power cut, and leaves a file behind that says it was there.

The transaction is the application's own; the places are around its commit, where a crash hurts most.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection

from apps.notifications import settings
from apps.notifications.database import open_engine
from apps.notifications.listeners import RestaurantNotificationListener
from apps.notifications.topology import source_of
from apps.notifications.words import Audience

MARK = "MARK"
engine = open_engine(settings.database_url())


def die(point: str) -> None:
    """Write down where, then end."""
    if sys.argv[1] == point:
        Path(os.environ[MARK]).write_text(point)
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def transaction() -> Iterator[Connection]:
    with engine.begin() as connection:
        yield connection
        die("before-commit")
    die("after-commit")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    source = source_of(Audience.RESTAURANT, settings.broker_url())
    asyncio.run(RestaurantNotificationListener(transaction, source=source).consumer.run())
