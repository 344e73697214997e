"""Records events in the caller's transaction: validates, encodes and inserts them. A relay sends them later."""

from pillarbox.record.outbox import Outbox
from pillarbox.record.registry import EventType, EventTypes

__all__ = ["EventType", "EventTypes", "Outbox"]
