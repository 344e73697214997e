"""Collected only when named: a test that forgets its server, for `test_leaks.py`."""

from tests.servers.postgres import PostgresServer


def test_forgets_its_server() -> None:
    PostgresServer(durable=False).start()
