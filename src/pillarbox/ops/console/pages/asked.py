"""What is said to whoever asked something of the relays."""

from __future__ import annotations

from pillarbox.ops import asking
from pillarbox.ops.console.visiting import Visit

NOBODY = "No relay is running now: it is done once one is."


async def answer(visit: Visit, said: str) -> str:
    """What was asked; and where nobody works, that it waits."""
    return said if await asking.anybody(visit.desk.store) else f"{said} {NOBODY}"
