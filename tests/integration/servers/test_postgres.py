"""The private PostgreSQL: it starts, crashes and keeps committed rows."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.servers.availability import available
from tests.servers.postgres import PostgresServer
from tests.servers.processes import ServerFailed


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that only this module uses and may kill."""
    with available(PostgresServer) as server:
        yield server


def _commit_a_row(server: PostgresServer, table: str) -> None:
    with psycopg.connect(server.url()) as connection:
        connection.execute(f"CREATE TABLE {table} AS SELECT 7 AS n")


def _rows(server: PostgresServer, table: str) -> list[tuple[object, ...]]:
    with psycopg.connect(server.url()) as connection:
        return connection.execute(f"SELECT n FROM {table}").fetchall()


def test_listens_on_loopback_only(own_server: PostgresServer) -> None:
    with psycopg.connect(own_server.url()) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)


def test_is_durable_by_default(own_server: PostgresServer, postgres_server: PostgresServer) -> None:
    with psycopg.connect(own_server.url()) as durable, psycopg.connect(postgres_server.url()) as quick:
        assert durable.execute("SHOW fsync").fetchone() == ("on",)
        assert quick.execute("SHOW fsync").fetchone() == ("off",)


def test_committed_rows_survive_an_immediate_restart(own_server: PostgresServer) -> None:
    _commit_a_row(own_server, "survives_immediate")
    before = own_server.pid
    own_server.restart("immediate")
    assert own_server.pid != before
    assert _rows(own_server, "survives_immediate") == [(7,)]


def test_committed_rows_survive_a_kill_with_a_session_open(own_server: PostgresServer) -> None:
    _commit_a_row(own_server, "survives_kill")
    with psycopg.connect(own_server.url()) as session:
        own_server.kill()
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(own_server.url(), connect_timeout=2)
    own_server.start()
    assert _rows(own_server, "survives_kill") == [(7,)]


def test_a_database_is_cloned_from_a_template_and_dropped_under_a_session(
    postgres_server: PostgresServer,
) -> None:
    postgres_server.create_database("original")
    with psycopg.connect(postgres_server.url("original")) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
    postgres_server.create_database("a clone", template="original")
    with psycopg.connect(postgres_server.url("a%20clone")) as clone:
        assert clone.execute("SELECT n FROM kept").fetchone() == (7,)
        postgres_server.drop_database("a clone")
        with pytest.raises(psycopg.OperationalError):
            clone.execute("SELECT 1")
    postgres_server.drop_database("original")


def test_a_server_that_cannot_start_is_an_error_and_cleans_up() -> None:
    server = available(lambda: PostgresServer(settings={"max_connections": "many"}))
    with pytest.raises(ServerFailed, match="max_connections"), server:
        pass
    assert not server.folder.exists()
