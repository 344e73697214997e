"""Helpers that send to the transports under test."""

from typing import Any

from pillarbox.core.transport import SendResult
from pillarbox.testing.conformance.transports import outgoing
from pillarbox.transports.handlers import Handlers

JSON = "application/json"


async def call(handlers: Handlers, name: str = "h", *, body: bytes = b"{}", **more: Any) -> SendResult:
    """Send one event to the handler of that name; returns its result."""
    [result] = await handlers.send([outgoing("e", handlers.to(name), body=body, content_type=JSON, **more)])
    return result
