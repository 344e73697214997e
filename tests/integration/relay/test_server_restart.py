"""After a restart of the database server, sessions from before it prove nothing, and later ones count at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import TypeAlias

import psycopg
import pytest

from pillarbox import open_store
from pillarbox.core.errors import StoreUnavailableError
from pillarbox.core.lane import RelayRegistration
from pillarbox.core.store import Store
from pillarbox.testing.waiting import eventually
from tests.servers.availability import available
from tests.servers.mariadb import MariaDBServer
from tests.servers.postgres import PostgresServer

LEASE = 600.0
GRACE = 5.0
"""Seconds after a restart in which a session from before it does not count as ended."""
RECONNECTED_AFTER = 3.0
"""MariaDB tells its uptime in whole seconds: a session of the first two may be from before the restart."""
ATTEMPTS = 5
"""On a busy machine the grace may pass before an answer is there: then the server restarts again."""

Server: TypeAlias = PostgresServer | MariaDBServer


def uptime(server: Server) -> float:
    if isinstance(server, MariaDBServer):
        [(_, seconds)] = server.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")
        return float(str(seconds))
    with psycopg.connect(server.url()) as connection:
        [(passed,)] = connection.execute("SELECT extract(epoch FROM now() - pg_postmaster_start_time())")
        return float(passed)


@pytest.mark.parametrize("make", [PostgresServer, MariaDBServer])
async def test_a_crash_soon_after_a_restart_of_the_server_is_seen_before_the_lease_ends(
    make: Callable[..., Server],
) -> None:
    with available(lambda: make(durable=False)) as server:
        server.create_database("shop")
        async with aclosing(open_store(server.url("shop"))) as store:
            await store.schema.apply()
            await store.lanes.join(RelayRegistration(id="watcher"), lease=LEASE)
            for attempt in range(ATTEMPTS):
                if await is_seen(server, store, f"crashed-{attempt}"):
                    return
    pytest.fail(f"no crash was seen within {GRACE:g} s after a restart")


async def is_seen(server: Server, store: Store, crashed: str) -> bool:
    """Whether the crash of a relay that reconnected after a restart is seen within the grace."""

    async def renewed() -> bool:
        with suppress(StoreUnavailableError):
            return await heartbeat.lanes.renew(crashed, lease=LEASE) is not None
        return False

    async def watched() -> bool:
        with suppress(StoreUnavailableError):
            ended.extend(session.relay for session in await store.lanes.ended("watcher"))
            return True
        return False

    async def seen_or_late() -> bool:
        return (await watched() and crashed in ended) or uptime(server) >= GRACE

    ended: list[str] = []

    heartbeat = store.clone()
    await heartbeat.lanes.join(RelayRegistration(id=crashed), lease=LEASE)
    assert await renewed()
    server.restart()
    await eventually(watched)
    if uptime(server) < GRACE:
        assert crashed not in ended, "a session from before the restart counts as ended at once"
    await eventually(lambda: uptime(server) >= RECONNECTED_AFTER)
    await eventually(renewed)
    await heartbeat.aclose()
    ended.clear()
    await eventually(seen_or_late)
    return uptime(server) < GRACE
