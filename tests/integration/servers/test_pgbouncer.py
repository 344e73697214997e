"""PgBouncer in transaction mode: a session is lent for one transaction at a time."""

import psycopg

from tests.servers.availability import available
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer


def test_a_transaction_runs_through_the_pooler(pgbouncer: PgBouncer) -> None:
    with psycopg.connect(pgbouncer.url()) as connection:
        assert connection.execute("SELECT 7").fetchone() == (7,)


def test_two_clients_share_one_session_in_turn(postgres_server: PostgresServer) -> None:
    with (
        available(lambda: PgBouncer(postgres_server, pool_size=1)) as narrow,
        psycopg.connect(narrow.url(), prepare_threshold=None) as one,
        psycopg.connect(narrow.url(), prepare_threshold=None) as other,
    ):
        first = one.execute("SELECT pg_backend_pid()").fetchone()
        one.commit()
        assert other.execute("SELECT pg_backend_pid()").fetchone() == first


def test_every_database_of_the_server_is_reached(pgbouncer: PgBouncer, postgres_server: PostgresServer) -> None:
    postgres_server.create_database("behind_the_pooler")
    with psycopg.connect(pgbouncer.url("behind_the_pooler")) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("behind_the_pooler",)
    postgres_server.drop_database("behind_the_pooler")


def test_its_console_says_transaction(pgbouncer: PgBouncer) -> None:
    with (
        psycopg.connect(pgbouncer.url("pgbouncer"), autocommit=True) as console,
        psycopg.ClientCursor(console) as cursor,
    ):
        settings = {row[0]: row[1] for row in cursor.execute("SHOW CONFIG")}
    assert settings["pool_mode"] == "transaction"
