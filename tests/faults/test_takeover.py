"""Lanes of a killed relay are taken over long before its lease ends; a relay that lost its session continues."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pillarbox import Event, Outbox
from tests.faults.conftest import MakeStage
from tests.faults.relays import MAX_IN_FLIGHT, RelayProcess
from tests.faults.stage import Stage, assert_sound
from tests.integration.cli.running import fresh_pillarbox
from tests.integration.rabbitmq.proxy import Proxy
from tests.servers.rabbitmq import RabbitMQServer
from tests.servers.waiting import wait_until

EVENTS = 1_000
NO_LEASE_ENDS = {"RELAY__LEASE": "1h", "RELAY__HEARTBEAT_INTERVAL": "1s"}
"""A takeover within the timeout of a test cannot have waited for this lease."""
HAS_SESSION = "SELECT count(session) FROM outbox_relay WHERE name = %s"
SESSIONS = "SELECT split_part(session, ':', 1)::int FROM outbox_relay WHERE name = %s AND session IS NOT NULL"


def share(stage: Stage, *relays: RelayProcess) -> None:
    """Wait until they share the lanes, each with its own session."""
    each = 64 // len(relays)
    stage.wait_until(
        lambda: all(stage.lanes_of(relay) == each and stage.number(HAS_SESSION, relay.name) for relay in relays),
        what=f"{len(relays)} relays share the lanes",
    )


def test_the_lanes_of_a_killed_relay_are_taken_long_before_its_lease_ends(any_stage: Stage) -> None:
    stage = any_stage
    victim, successor = stage.start(NO_LEASE_ENDS), stage.start(NO_LEASE_ENDS)
    share(stage, victim, successor)
    with stage.under_load():
        stage.freeze_unsettled(victim)
        victim.kill()
        victim.thaw()
        assert victim.wait() == -9
        stage.wait_until(lambda: stage.lanes_of(successor) == 64, what="the other one has every lane")
    stage.wait_drained()
    assert successor.said("from a crashed relay")
    assert_sound(stage.check(), duplicates=range(1, MAX_IN_FLIGHT + 1))


def test_a_frozen_relay_keeps_its_session_and_its_lanes(stage: Stage) -> None:
    frozen, other = stage.start(NO_LEASE_ENDS), stage.start(NO_LEASE_ENDS)
    share(stage, frozen, other)
    frozen.freeze()
    beats = "SELECT (lease_until > now() + interval '1h' - interval '1s')::int FROM outbox_relay WHERE name = %s"
    for _ in range(4):  # Four heartbeats of the other relay.
        stage.wait_until(lambda: stage.number(beats, other.name) == 0, what="its heartbeat is due")
        stage.wait_until(lambda: stage.number(beats, other.name) == 1, what="its heartbeat came")
    assert (stage.lanes_of(frozen), stage.lanes_of(other)) == (32, 32)
    frozen.thaw()
    stage.write(EVENTS)
    stage.wait_drained()
    assert_sound(stage.check(), duplicates=range(1))


def test_a_relay_whose_session_is_terminated_continues_in_order(stage: Stage) -> None:
    victim, other = stage.start(NO_LEASE_ENDS), stage.start(NO_LEASE_ENDS)
    share(stage, victim, other)
    with stage.under_load():
        for _ in range(3):
            [(session,)] = stage.query(SESSIONS, victim.name)
            stage.query("SELECT pg_terminate_backend(%s)", session)
            stage.wait_until(
                lambda gone=session: stage.query(SESSIONS, victim.name) not in ([], [(gone,)]),  # type: ignore[misc]
                what="it has another session",
            )
    share(stage, victim, other)
    stage.write(EVENTS)
    stage.wait_drained()
    assert victim.running
    assert_sound(stage.check(), duplicates=range(3 * MAX_IN_FLIGHT + 1))


async def test_a_disconnected_relay_whose_lease_expired_is_fenced(
    make_stage: MakeStage, postgres_url: str, rabbitmq_server: RabbitMQServer
) -> None:
    """The network drops everything between it and its database, which ends its session; the relay continues to send."""
    stage = make_stage(store=postgres_url, transport=rabbitmq_server.url())
    port = int(postgres_url.rpartition("/")[0].rpartition(":")[2])
    async with Proxy(port) as proxy:
        through = postgres_url.replace(f":{port}/", f":{proxy.port}/")
        victim = await asyncio.to_thread(stage.start, NO_LEASE_ENDS | {"STORE": through})
        successor = await asyncio.to_thread(stage.start, NO_LEASE_ENDS)
        await asyncio.to_thread(share, stage, victim, successor)
        await asyncio.to_thread(stage.write, EVENTS)
        proxy.silence()
        [(session,)] = stage.query(SESSIONS, victim.name)
        stage.query("SELECT pg_terminate_backend(%s)", session)
        await asyncio.to_thread(
            stage.wait_until, lambda: stage.lanes_of(successor) == 64, what="the other one has every lane"
        )
        assert victim.running
        await asyncio.to_thread(stage.write, EVENTS)
        await asyncio.to_thread(stage.wait_drained)
        await proxy.heal()
        await asyncio.to_thread(share, stage, victim, successor)
        await asyncio.to_thread(stage.write, EVENTS)
        await asyncio.to_thread(stage.wait_drained)
        findings = await asyncio.to_thread(stage.check)
        assert victim.said("lease lost")
    assert_sound(findings, duplicates=range(MAX_IN_FLIGHT + 1))


@contextmanager
def on_sqlite(folder: Path) -> Iterator[RelayProcess]:
    process = RelayProcess(folder, NO_LEASE_ENDS | {"STORE": f"sqlite:///{folder}/shop.db", "TRANSPORT": "stdout://"})
    try:
        yield process
    finally:
        process.end()


@pytest.mark.parametrize("frozen_first", [False, True])
def test_on_sqlite_the_lock_of_a_killed_relay_reveals_its_crash(tmp_path: Path, frozen_first: bool) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    assert fresh_pillarbox("schema", "apply", cwd=tmp_path, PILLARBOX_STORE=url).returncode == 0

    def one(statement: str) -> object:
        with closing(sqlite3.connect(tmp_path / "shop.db", timeout=30)) as connection:
            return connection.execute(statement).fetchone()[0]

    with on_sqlite(tmp_path) as victim:
        wait_until(lambda: one("SELECT count(session) FROM outbox_relay") == 1, bound=60, what="it holds its lock")
        wait_until(lambda: one("SELECT count(owner) FROM outbox_lane") == 1, bound=60, what="it has the lane")
        owner = one("SELECT owner FROM outbox_lane")
        with on_sqlite(tmp_path) as successor:
            wait_until(lambda: one("SELECT count(session) FROM outbox_relay") == 2, bound=60, what="so does another")
            if frozen_first:
                victim.freeze()
            assert one("SELECT owner FROM outbox_lane") == owner
            victim.kill()
            assert victim.wait() == -9
            with closing(sqlite3.connect(tmp_path / "shop.db", timeout=30)) as connection, connection:
                Outbox().record(connection, Event("order.placed", {"id": 1}))
            wait_until(lambda: successor.said("delivered event"), bound=60, what="the other one carries the event")
            assert one("SELECT owner FROM outbox_lane") != owner
            successor.terminate()
            assert successor.wait() == 0
    assert list(tmp_path.glob("shop.db-relay-*")) == []
