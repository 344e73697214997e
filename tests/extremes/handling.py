"""Handlers for the relays of a scene: they write ids, and payloads, to files in their working folder."""

from __future__ import annotations

from pathlib import Path

from pillarbox.transports.handlers import HandlerContext, Handlers, ReceivedEvent

ARRIVALS = Path("arrivals.txt")
REFUSED = Path("refused")
"""While this file exists, every event is rejected."""

keeping = Handlers()


@keeping.on("*", name="keeping")
async def keep(event: ReceivedEvent, context: HandlerContext) -> None:
    write(event.event_id, event.payload)


noting = Handlers()


@noting.on("*", name="noting")
async def note(event: ReceivedEvent, context: HandlerContext) -> None:
    accept(event.event_id)


def accept(event_id: str) -> None:
    if REFUSED.exists():
        raise ValueError("not now")
    add(event_id)


def write(event_id: str, payload: bytes) -> None:
    Path(f"{event_id}.payload").write_bytes(payload)
    add(event_id)


def add(event_id: str) -> None:
    with ARRIVALS.open("a") as arrivals:
        arrivals.write(f"{event_id}\n")
