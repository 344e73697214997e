"""`python -m tests.apps.notifications.faults.crashing_listener POINT`: the listener of the restaurants, which kills
itself at POINT, before or after the commit of its transaction, and writes a marker file first.
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
from apps.notifications.domain import Audience
from apps.notifications.listeners import RestaurantNotificationListener
from apps.notifications.topology import source_of

MARK = "MARK"
engine = open_engine(settings.database_url())


def crash_at(point: str) -> None:
    """Write the marker file, then send SIGKILL to this process."""
    if sys.argv[1] == point:
        Path(os.environ[MARK]).write_text(point)
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def transaction() -> Iterator[Connection]:
    with engine.begin() as connection:
        yield connection
        crash_at("before-commit")
    crash_at("after-commit")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    source = source_of(Audience.RESTAURANT, settings.broker_url())
    asyncio.run(RestaurantNotificationListener(transaction, source=source).consumer.run())
