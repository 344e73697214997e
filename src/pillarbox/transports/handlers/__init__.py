"""In-process handlers as a transport: functions of the application that are called with each event of their type."""

from pillarbox.transports.handlers.received import HandlerContext, ReceivedEvent
from pillarbox.transports.handlers.registry import HandlerObject
from pillarbox.transports.handlers.transport import HandlerAddress, Handlers, HandlerTransport

__all__ = ["HandlerAddress", "HandlerContext", "HandlerObject", "HandlerTransport", "Handlers", "ReceivedEvent"]
