"""Handled once, in effect: a receipt in the same transaction as the effect tells a repeat from a first time."""

from pillarbox.inbox.inbox import Inbox

__all__ = ["Inbox"]
