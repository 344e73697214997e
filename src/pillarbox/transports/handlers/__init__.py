"""In-process handlers as a transport: it calls functions of the application for each event of their type."""

from pillarbox.transports.handlers.calls import HandlerContext, ReceivedEvent
from pillarbox.transports.handlers.registry import HandlerObject, Handlers
from pillarbox.transports.handlers.transport import HandlerAddress, HandlerTransport

__all__ = ["HandlerAddress", "HandlerContext", "HandlerObject", "HandlerTransport", "Handlers", "ReceivedEvent"]
