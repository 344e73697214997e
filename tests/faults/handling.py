"""Handlers for relays on the stage: they write every event to a file in their working folder before they return."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from pillarbox.testing.waiting import eventually
from pillarbox.transports.handlers import HandlerContext, Handlers, ReceivedEvent
from tests.servers.waiting import wait_until

NOTES = Path("notes.txt")
BLOCKING = Path("blocking.txt")
"""Exists from the moment at which a handler hangs or blocks the event loop."""
ENOUGH = Path("enough.txt")
"""The test creates it once the handler did so for long enough."""

odd = Handlers(timeout="forever")
"""Do what the event says: fail, hang, kill the process, or block its event loop."""
refusing = Handlers()
"""Reject one event in eight on its first delivery."""


@odd.on("*", name="odd")
async def obey(event: ReceivedEvent, context: HandlerContext) -> None:
    match event.payload.get("what"):
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "block":
            block()
        case "hang":
            note_blocking()
            await eventually(ENOUGH.exists, within=300)
        case "fail":
            raise ValueError("never")
    note(event.event_id)


@refusing.on("*", name="refusing")
async def refuse(event: ReceivedEvent, context: HandlerContext) -> None:
    if context.attempt == 1 and event.event_id[-1] in "01":
        raise ValueError("not now")
    note(event.event_id)


def block() -> None:
    """Block the event loop until the test continues."""
    note_blocking()
    wait_until(ENOUGH.exists, bound=300, what="the test continues")


def note_blocking() -> None:
    BLOCKING.touch()


def note(event_id: str) -> None:
    with NOTES.open("a") as notes:
        notes.write(f"{event_id}\n")
