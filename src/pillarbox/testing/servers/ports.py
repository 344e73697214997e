"""Free loopback ports for servers that must keep theirs across restarts."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path

# Below the range the kernel gives to outgoing connections, so that none of those takes the port of a server
# which is down for a restart.
_RANGE = range(20_000, 32_000)
_given: set[int] = set()


def free_port() -> int:
    """A free port that no other test run on this machine has reserved."""
    for port in random.sample(_RANGE, len(_RANGE)):
        if port not in _given and _claimed(port) and _can_bind(port):
            _given.add(port)
            return port
    raise RuntimeError(f"no free loopback port in {_RANGE.start}-{_RANGE.stop - 1}")


def is_open(port: int, host: str = "127.0.0.1") -> bool:
    """Whether the port accepts connections."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@cache
def _claims() -> int:
    """Test runs are concurrent: a lock on one byte per port, held until this process ends, separates them."""
    path = Path(tempfile.gettempdir(), f"pillarbox-test-ports-{os.geteuid()}")
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def _claimed(port: int) -> bool:
    try:
        fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
