"""What a producer must be allowed to do: INSERT, and nothing else."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

import asyncpg
import psycopg
import pytest
from psycopg import sql

from pillarbox import DuplicateEventError, Event, Outbox, RecordError
from tests.integration.record.conftest import committed_ids
from tests.integration.record.notifications import Listener, sleeping_relay

EVENT = Event("order.placed", {"id": 1}, event_id="evt-001")
_numbers = count(1)


class Role:
    """A role with only the granted privileges."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.name = f"producer_{next(_numbers)}"
        self._run("CREATE ROLE {role} LOGIN")

    @property
    def url(self) -> str:
        return self._url.replace("//postgres@", f"//{self.name}@")

    def grant(self, what: str) -> None:
        self._run("GRANT " + what + " TO {role}")

    def drop(self) -> None:
        self._run("DROP OWNED BY {role}")
        self._run("DROP ROLE {role}")

    def _run(self, statement: str) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(role=sql.Identifier(self.name)))


@pytest.fixture
def role(postgres_url: str) -> Iterator[Role]:
    role = Role(postgres_url)
    yield role
    role.drop()


@asynccontextmanager
async def _transaction(role: Role) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(role.url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize(("wakeup", "notified"), [("notify", True), ("none", False)])
async def test_the_insert_privilege_is_enough(postgres_url: str, role: Role, wakeup: Any, notified: bool) -> None:
    role.grant("INSERT ON outbox_message")
    with sleeping_relay(postgres_url), Listener(postgres_url) as listener:
        async with _transaction(role) as connection:
            await Outbox(wakeup=wakeup).arecord(connection, EVENT)
        assert listener.notified() is notified
    assert committed_ids(postgres_url) == ["evt-001"]


@pytest.mark.parametrize("outbox", [Outbox(duplicate="ignore"), Outbox(strict_order=True)])
async def test_no_setting_needs_more_than_the_insert_privilege(postgres_url: str, role: Role, outbox: Outbox) -> None:
    role.grant("INSERT ON outbox_message")
    async with _transaction(role) as connection:
        await outbox.arecord(connection, EVENT)
    assert committed_ids(postgres_url) == ["evt-001"]


async def test_a_duplicate_of_a_batch_is_named_with_its_candidates(role: Role) -> None:
    role.grant("INSERT ON outbox_message")
    async with _transaction(role) as connection:
        await Outbox().arecord(connection, EVENT)
    with pytest.raises(DuplicateEventError, match="one of the events evt-001, evt-002"):
        async with _transaction(role) as connection:
            await Outbox().arecord(connection, EVENT, Event("order.paid", {}, event_id="evt-002"))


@pytest.mark.parametrize("wakeup", ["notify", "none"])
async def test_a_missing_insert_privilege_is_named(role: Role, wakeup: Any) -> None:
    with pytest.raises(RecordError, match=r'GRANT INSERT ON "public"\."outbox_message"') as caught:
        async with _transaction(role) as connection:
            await Outbox(wakeup=wakeup).arecord(connection, EVENT)
    assert isinstance(caught.value.__cause__, asyncpg.InsufficientPrivilegeError)
