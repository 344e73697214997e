"""Handlers for the relays of a scene: they write each payload to a file in their working folder."""

from __future__ import annotations

from pathlib import Path

from pillarbox.transports.handlers import HandlerContext, Handlers, ReceivedEvent

ARRIVALS = Path("arrivals.txt")

keeping = Handlers()


@keeping.on("*", name="keeping")
async def keep(event: ReceivedEvent, context: HandlerContext) -> None:
    write(event.event_id, event.payload)


def write(event_id: str, payload: bytes) -> None:
    Path(f"{event_id}.payload").write_bytes(payload)
    with ARRIVALS.open("a") as arrivals:
        arrivals.write(f"{event_id}\n")
