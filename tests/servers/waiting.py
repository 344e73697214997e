"""Waits for a condition with a timeout: shipped in `pillarbox.testing.servers`."""

from pillarbox.testing.servers.waiting import wait_until

__all__ = ["wait_until"]
