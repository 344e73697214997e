"""Collected only when named: a test on a machine without its server, for `test_debian.py`."""

from tests.servers.availability import available
from tests.servers.debian import Binary


def test_needs_a_server() -> None:
    available(Binary(name="no-such-server", package="no-such-package").path)
