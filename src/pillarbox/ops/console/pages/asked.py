"""The messages shown after an operator request."""

from __future__ import annotations

from pillarbox.ops import operator_requests
from pillarbox.ops.console.visiting import Visit

NO_RELAY = "No relay is running: the request stays open until one runs."


async def answer(visit: Visit, said: str) -> str:
    """Add to the message that no relay is running, if so."""
    return said if await operator_requests.has_running_relay(visit.desk.store) else f"{said} {NO_RELAY}"
