"""Real servers for tests, private to one test run: free loopback ports, folders of their own, stopped by pid.

    postgres.py rabbitmq.py    one server each: start, stop, kill, restart, close, url
    binaries.py                where the installed programs are, and what to install if one is missing
    processes.py ports.py      what the servers have in common

Nothing here connects to a server that it did not start. The programs come from the packages of the system; none is
downloaded. Linux only.
"""

from pillarbox.testing.servers.binaries import MissingServer
from pillarbox.testing.servers.postgres import PostgresServer
from pillarbox.testing.servers.rabbitmq import RabbitMQServer

__all__ = ["MissingServer", "PostgresServer", "RabbitMQServer"]
