"""The base of all servers: shipped in `pillarbox.testing.servers`."""

from pillarbox.testing.servers.server import Server

__all__ = ["Server"]
