"""What a record sends, by the server's own log: one INSERT, whatever it checks and however many events it has."""

import re
from pathlib import Path

import psycopg
import pytest

from pillarbox import Event, Outbox
from tests.integration.record.notifications import sleeping_relay
from tests.integration.record.way import Way
from tests.integration.record.ways import POSTGRES
from tests.servers.postgres import PostgresServer
from tests.servers.waiting import wait_until

_LOGGED = re.compile(r"LOG:  (?:statement|execute [^:]+): ((\w+)(?:.|\n\t)*)")


class Log:
    """The statements of one database, from here on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin = path.stat().st_size

    def transaction(self) -> list[str]:
        """The first words of our statements in one transaction; asyncpg looks up the types of arrays by itself."""
        found: list[str] = []

        def committed() -> bool:
            with self._path.open("rb") as file:
                file.seek(self._begin)
                logged = _LOGGED.findall(file.read().decode())
            found[:] = [word.upper() for text, word in logged if "typeinfo" not in text]
            return "COMMIT" in found

        wait_until(committed, bound=60, what="the server logs the commit")
        sent = found[: found.index("COMMIT")]
        # SQLAlchemy asks for settings in an earlier transaction.
        return sent[len(sent) - sent[::-1].index("BEGIN") :]


@pytest.fixture
def log(postgres_server: PostgresServer, postgres_url: str) -> Log:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        database = connection.info.dbname
        connection.execute(f"ALTER DATABASE \"{database}\" SET log_statement = 'all'".encode())
    return Log(postgres_server.folder / "postgres.log")


@pytest.mark.parametrize("way", POSTGRES, ids=str)
async def test_each_record_is_one_statement_in_its_transaction(way: Way, postgres_url: str, log: Log) -> None:
    async with way.transaction(postgres_url) as connection:
        await way.record(Outbox(), connection, Event("order.placed", {"id": 1}))
        await way.record(Outbox(), connection, Event("order.paid", {"id": 1}))
        await way.record(Outbox(), connection, *(Event("order.shipped", {"part": part}) for part in range(200)))
    assert log.transaction() == ["INSERT", "INSERT", "INSERT"]


@pytest.mark.parametrize("way", POSTGRES, ids=str)
async def test_a_record_that_notifies_is_one_statement_too(way: Way, postgres_url: str, log: Log) -> None:
    with sleeping_relay(postgres_url):
        async with way.transaction(postgres_url) as connection:
            await way.record(Outbox(), connection, Event("order.placed", {"id": 1}))
        assert log.transaction() == ["INSERT"]
