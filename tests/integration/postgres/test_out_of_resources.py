"""The relay retries what the server could not do now: full disk, no memory, a replica after a failover, a deadlock, a
serialization failure, a lock timeout."""

from contextlib import aclosing

import pytest

from pillarbox import Handlers, Relay, RelayConfig
from pillarbox.core.observations import LeaseLost, Observation, StoreFailed
from pillarbox.stores.postgres import PostgresStore
from pillarbox.testing.waiting import eventually
from tests.databases import Sql

REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'nothing can be written' USING ERRCODE = '{state}'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON outbox_history FOR EACH ROW EXECUTE FUNCTION refuse();
"""


REFUSE_READS = """
CREATE FUNCTION refuse_read() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'nothing can be read' USING ERRCODE = '{state}'; END $$;
CREATE POLICY refuse ON outbox_message USING (refuse_read());
ALTER TABLE outbox_message ENABLE ROW LEVEL SECURITY;
"""
"""A policy applies to the relay's role, and not to the role of the test, which is a superuser."""
CONFLICTS = ("40P01", "40001", "55P03")


@pytest.mark.parametrize("state", ["53100", "53200", "53400", "25006", *CONFLICTS])
async def test_settlements_are_retried_and_nothing_is_sent_twice(store: PostgresStore, sql: Sql, state: str) -> None:
    handled: list[str] = []
    reported: list[Observation] = []
    handlers = Handlers()

    @handlers.on("*", name="all")
    async def handle(event: object, context: object) -> None:
        handled.append(event.event_id)  # type: ignore[attr-defined]

    async def failed_twice() -> bool:
        return sum(isinstance(one, StoreFailed) and "nothing can be written" in one.error for one in reported) >= 2

    async def settled() -> bool:
        return bool(await sql.fetchval("SELECT count(*) = 20 FROM outbox_history"))

    await sql.execute(REFUSE.format(state=state))
    await sql.execute("INSERT INTO outbox_message (event_type, payload) SELECT 't', '{}' FROM generate_series(1, 20)")
    config = RelayConfig(heartbeat_interval="200ms", lease="12s")
    async with Relay(store=store, transports={"handlers": handlers}, config=config, observers=[reported.append]):
        await eventually(failed_twice, within=60)
        await sql.execute("DROP TRIGGER refuse ON outbox_history")
        await eventually(settled, within=60)
    assert len(handled) == len(set(handled)) == 20


@pytest.mark.parametrize("state", CONFLICTS)
async def test_fetches_are_retried(postgres_url: str, roles: dict[str, str], sql: Sql, state: str) -> None:
    handled: list[str] = []
    reported: list[Observation] = []
    handlers = Handlers()

    @handlers.on("*", name="all")
    async def handle(event: object, context: object) -> None:
        handled.append(event.event_id)  # type: ignore[attr-defined]

    async def failed_twice() -> bool:
        return sum(isinstance(one, StoreFailed) and "nothing can be read" in one.error for one in reported) >= 2

    async def settled() -> bool:
        return bool(await sql.fetchval("SELECT count(*) = 20 FROM outbox_history"))

    await sql.execute("INSERT INTO outbox_message (event_type, payload) SELECT 't', '{}' FROM generate_series(1, 20)")
    await sql.execute(REFUSE_READS.format(state=state))
    config = RelayConfig(heartbeat_interval="200ms", lease="12s")
    store = PostgresStore(postgres_url.replace("postgres@", f"{roles['relay']}@"))
    relay = Relay(store=store, transports={"handlers": handlers}, config=config, observers=[reported.append])
    async with aclosing(store), relay:
        await eventually(failed_twice, within=60)
        assert handled == []
        await sql.execute("ALTER TABLE outbox_message DISABLE ROW LEVEL SECURITY")
        await eventually(settled, within=60)
    assert len(handled) == len(set(handled)) == 20
    assert not any(isinstance(one, LeaseLost) for one in reported)
