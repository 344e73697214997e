"""Inside your transaction: events are checked, encoded and appended there, and nothing is sent yet."""

from pillarbox.record.outbox import Outbox
from pillarbox.record.registry import EventType, EventTypes

__all__ = ["EventType", "EventTypes", "Outbox"]
