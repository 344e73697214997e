"""Free loopback ports: shipped in `pillarbox.testing.servers`."""

from pillarbox.testing.servers.ports import free_port, is_open

__all__ = ["free_port", "is_open"]
