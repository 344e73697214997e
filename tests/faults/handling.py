"""Handlers for relays on the stage: they note every event in a file of the folder they run in, before they are done."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pillarbox.transports.handlers import HandlerContext, Handlers, ReceivedEvent
from tests.faults.relays import LEASE

NOTES = Path("notes.txt")
BLOCKING = Path("blocking.txt")
"""There from the moment at which the event loop stands still."""
ENOUGH = Path("enough.txt")
"""The test makes it once the event loop has stood still for long enough."""

odd = Handlers()
"""Do what the event says: kill the process, or block its event loop."""
refusing = Handlers()
"""Refuse one event in eight when it comes for the first time."""


@odd.on("*", name="odd")
async def obey(event: ReceivedEvent, context: HandlerContext) -> None:
    match event.payload.get("what"):
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "block":
            block()
    note(event.event_id)


@refusing.on("*", name="refusing")
async def refuse(event: ReceivedEvent, context: HandlerContext) -> None:
    if context.attempt == 1 and event.event_id[-1] in "01":
        raise ValueError("not now")
    note(event.event_id)


def block() -> None:
    """For longer than a lease, and until the test has seen what it wants to see."""
    BLOCKING.touch()
    time.sleep(LEASE + 2)
    while not ENOUGH.exists():
        time.sleep(0.01)


def note(event_id: str) -> None:
    with NOTES.open("a") as notes:
        notes.write(f"{event_id}\n")
