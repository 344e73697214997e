"""The messages shown after an operator request."""

from __future__ import annotations

from pillarbox.ops import operator_requests
from pillarbox.ops.console.request import ConsoleRequest

NO_RELAY = "No relay is running: the request stays open until one runs."


async def answer(request: ConsoleRequest, said: str) -> str:
    """Add to the message that no relay is running, if so."""
    return said if await operator_requests.has_running_relay(request.store) else f"{said} {NO_RELAY}"
